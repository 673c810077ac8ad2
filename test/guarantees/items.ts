import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { History } from './history.ts'
import { textOf, versionOf as versionIn } from './sources.ts'

/** An API whose items are written, and which nobody is told of: it has to be polled. */
export interface Items {
  readonly url: string
  readonly uris: readonly string[]
  write(uri: string, absent?: boolean): void
  has(uri: string): boolean
  close(): Promise<void>
}

export const address = 'items://api'

/** The prefixes of the ids of items: some may be seen by everybody, some by the team, some by the chief alone. */
export const kinds = { open: 'i', team: 't', secret: 's' } as const

/** The template of an item, and the list that tells them apart. */
export const routes = [{ template: 'items/{id}', list: { from: 'items', title: '/version' } }]

const uriOf = (id: string) => `${address}/items/${id}`
const idOf = (uri: string) => uri.slice(uriOf('').length)

/** Serves items. A write and the fact of it are one step. */
export async function serveItems(history: History, count: number): Promise<Items> {
  const versions = new Map<string, number>()
  const present = new Set<string>()
  const server = createServer((request, response) => {
    response.setHeader('Content-Type', 'application/json')
    const [, , id] = (request.url ?? '').split('/')
    if (id === undefined) {
      const list = Array.from(present, (one) => ({ id: one, version: `${versions.get(one)}` }))
      response.end(JSON.stringify(list))
      return
    }
    response.statusCode = present.has(id) ? 200 : 404
    const version = versions.get(id)
    response.end(JSON.stringify(version === undefined ? {} : { text: textOf(uriOf(id), version) }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const write = (uri: string, absent = false): void => {
    const id = idOf(uri)
    if (absent && !present.has(id)) return
    const version = (versions.get(id) ?? -1) + 1
    const listed = absent || !present.has(id)
    versions.set(id, version)
    if (absent) present.delete(id)
    else present.add(id)
    history.add({ kind: 'write', uri, version, listed, absent })
  }
  const kindOf = (at: number) => (at % 5 === 3 ? kinds.team : at % 5 === 4 ? kinds.secret : kinds.open)
  const uris = Array.from({ length: count }, (_, at) => uriOf(`${kindOf(at)}${at}`))
  for (const uri of uris) write(uri)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    uris,
    write,
    has: (uri) => present.has(idOf(uri)),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The version that the answer for an item says, if it is whole. */
export function versionOf(uri: string, answer: string): number | 'torn' {
  try {
    return versionIn(uri, String((JSON.parse(answer) as { readonly text?: unknown }).text))
  } catch {
    return 'torn'
  }
}
