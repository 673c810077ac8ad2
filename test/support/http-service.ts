import { afterEach } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { type HttpOptions, type HttpService, serveHttp } from '../../src/server/http/serve-http.ts'
import { memory } from './memory.ts'

const facts = { name: 'test', version: '1', log: () => {}, host: '127.0.0.1', port: 0 }

/** Serves over HTTP on a free port, until the end of a test. */
export function useHttp(): (options: Pick<HttpOptions, 'view'> & Partial<HttpOptions>) => Promise<HttpService> {
  const services: HttpService[] = []
  afterEach(async () => {
    await Promise.all(services.splice(0).map((service) => service.close()))
  })
  return async ({ limits, ...options }) => {
    const service = await serveHttp({ ...facts, ...options, limits: { drain: 100, ...limits } })
    services.push(service)
    return service
  }
}

/** A source that answers with the requested path; for `path` only after it is released. */
export function createHeld(path: string): { readonly provider: Provider; readonly held: (() => void)[] } {
  const held: (() => void)[] = []
  const provider: Provider = {
    ...memory({}),
    read: async (request) => {
      if (request.path === path) await new Promise<void>((resolve) => held.push(resolve))
      return [{ text: request.path }]
    },
  }
  return { provider, held }
}
