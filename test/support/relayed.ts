import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect, vi } from 'vitest'
import { type Catalog, createCatalog, type Mount } from '../../src/core/catalog.ts'
import type { Principal } from '../../src/core/provider.ts'
import { type HttpService, type ServeOptions, serveHttp } from '../../src/server/index.ts'

export const people: Readonly<Record<string, Principal>> = {
  owner: { id: 'owner', roles: ['owner'] },
  guest: { id: 'guest', roles: ['guest'] },
  stranger: { id: 'stranger', roles: [] },
}

/** Waits until each source of a catalog has answered once: before that, its lists may lack slow sources. */
export async function allAnswer(catalog: Catalog): Promise<void> {
  const view = catalog.view({ id: 'waiting', roles: ['owner'] })
  await vi.waitFor(async () => expect((await view.list()).unavailable).toBeUndefined(), { timeout: 60_000 })
}

/** A catalog that is served over HTTP to official clients, one for each principal. */
export interface Relayed {
  readonly catalog: Catalog
  readonly logged: readonly string[]
  connect(who: string, mode?: 'auto' | 'legacy'): Promise<Client>
  /** Closes the clients. */
  closeClients(): Promise<void>
  close(): Promise<void>
}

export async function serveRelayed(
  mountsOf: (log: (level: string, message: string) => void) => readonly Mount[],
  options: Partial<ServeOptions> = {},
): Promise<Relayed> {
  const logged: string[] = []
  const log = (_: string, message: string) => void logged.push(message)
  const catalog = createCatalog({ mounts: mountsOf(log), changes: { listIntervalMs: 20 }, log })
  const services = new Map<string, HttpService>()
  for (const [who, principal] of Object.entries(people)) {
    const own = { name: 'test', version: '0', log, host: '127.0.0.1', port: 0, view: () => catalog.view(principal) }
    services.set(who, await serveHttp({ ...own, ...options }))
  }
  const clients: Client[] = []
  return {
    catalog,
    logged,
    connect: async (who, mode = 'auto') => {
      const client = new Client({ name: 'test', version: '0' }, mode === 'auto' ? { versionNegotiation: { mode } } : {})
      clients.push(client)
      const url = services.get(who)?.url ?? expect.fail('no service')
      await client.connect(new StreamableHTTPClientTransport(new URL(url)))
      return client
    },
    closeClients: async () => {
      for (const client of clients.splice(0)) await client.close()
    },
    close: async () => {
      for (const service of services.values()) await service.close()
      await catalog.close()
    },
  }
}
