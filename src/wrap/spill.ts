import { randomBytes } from 'node:crypto'
import { notFound } from '../core/errors.ts'
import { foundMimeType } from '../core/found.ts'
import { comparePaths } from '../core/path.ts'
import type { Content, Entry, Principal, Provider, Template } from '../core/provider.ts'
import { formatUri, parseAddress } from '../core/uri.ts'
import { searchFiles } from './spill-search.ts'

export interface SpillOptions {
  /** Address of the mount. Default `spill://results`. */
  readonly address?: string
  /** How long a result is kept, in milliseconds. Default one hour. */
  readonly keepMs?: number
  /** Maximum number of results of one principal. Default 100. The oldest make room. */
  readonly maxResults?: number
  /** Maximum size of the results of one principal, in bytes. Default 16 MiB. A larger result is not kept. */
  readonly maxBytes?: number
  /** Maximum size of all results, in bytes. Default 64 MiB. The principal with the most loses its oldest. */
  readonly maxTotalBytes?: number
  /** The current time, in milliseconds since 1970. */
  readonly now?: () => number
}

/** A file of a result. */
export interface SpillFile {
  /** Last segment of its path. */
  readonly name: string
  readonly title: string
  readonly mimeType: string
  readonly body: string | Uint8Array
}

/** A result that is kept: the URIs of its files, and its end, in milliseconds since 1970. */
export interface KeptResult {
  readonly uris: readonly string[]
  readonly expires: number
}

/** Long results of tools, kept in memory for a while. Each can be read only by the principal that it was made for. */
export interface Spill {
  readonly address: string
  /** Serves the results as resources. */
  readonly provider: Provider
  /** Keeps a result. Undefined when it is too large to be kept. */
  put(principal: Principal, files: readonly SpillFile[]): KeptResult | undefined
}

interface Result {
  readonly id: string
  readonly owner: string
  readonly made: number
  readonly bytes: number
  readonly files: ReadonlyMap<string, SpillFile>
}

const mebibyte = 1024 * 1024
const defaults = {
  address: 'spill://results',
  keepMs: 3600_000,
  maxResults: 100,
  maxBytes: 16 * mebibyte,
  maxTotalBytes: 64 * mebibyte,
}

/** Path of the search. No id of a result has so few characters. */
const searchPath = 'search'
const search: Template = {
  template: `${searchPath}{?q,limit}`,
  name: 'search',
  title: 'Search in long results',
  description: 'Finds lines in the results of tools that are kept for you, by words.',
  mimeType: foundMimeType,
  free: ['q', 'limit'],
}

export function createSpill(options: SpillOptions = {}): Spill {
  const { address, keepMs, maxResults, maxBytes, maxTotalBytes } = { ...defaults, ...options }
  const { now = Date.now } = options
  const parsed = parseAddress(address)
  /** The results, oldest first. */
  const results = new Map<string, Result>()
  let timer: NodeJS.Timeout | undefined

  const expiryOf = ({ made }: Result) => made + keepMs
  /** Drops the results whose time is over. */
  const sweep = (): void => {
    clearTimeout(timer)
    for (const result of results.values()) {
      if (expiryOf(result) > now()) {
        timer = setTimeout(sweep, Math.min(expiryOf(result) - now() + 1, 2 ** 30))
        timer.unref()
        return
      }
      results.delete(result.id)
    }
  }
  const ownedBy = (owner: string) => [...results.values()].filter((result) => result.owner === owner)
  const bytesOf = (some: Iterable<Result>) => [...some].reduce((sum, { bytes }) => sum + bytes, 0)

  /** Drops the oldest result of the principal that holds the most bytes: nobody can push out the results of others. */
  const dropOldestOfLargest = (): void => {
    const sizes = new Map<string, number>()
    for (const { owner, bytes } of results.values()) sizes.set(owner, (sizes.get(owner) ?? 0) + bytes)
    const [largest] = [...sizes].sort((a, b) => b[1] - a[1])
    const [oldest] = largest === undefined ? [] : ownedBy(largest[0])
    if (oldest !== undefined) results.delete(oldest.id)
  }

  const find = (path: string, { id: owner }: Principal): { result: Result; file: SpillFile } | undefined => {
    sweep()
    const [id = '', name = '', ...rest] = path.split('/')
    const result = results.get(id)
    const file = result?.files.get(name)
    return result === undefined || file === undefined || rest.length > 0 || result.owner !== owner
      ? undefined
      : { result, file }
  }
  const entryOf = (result: Result, { name, title, mimeType, body }: SpillFile): Entry => ({
    path: `${result.id}/${name}`,
    title,
    description: `The long result of a tool. It is kept until ${new Date(expiryOf(result)).toISOString()}.`,
    mimeType,
    size: typeof body === 'string' ? Buffer.byteLength(body) : body.length,
    modified: result.made,
    version: result.id,
  })
  const entriesOf = ({ id }: Principal): readonly Entry[] => {
    sweep()
    const entries = ownedBy(id).flatMap((result) => [...result.files.values()].map((file) => entryOf(result, file)))
    return entries.sort((a, b) => comparePaths(a.path, b.path))
  }

  const provider: Provider = {
    list: async function* ({ prefix = '', after }, { principal }) {
      for (const entry of entriesOf(principal))
        if (entry.path.startsWith(prefix) && (after === undefined || comparePaths(entry.path, after) > 0)) yield entry
    },
    stat: async (path, { principal }) => {
      const found = find(path, principal)
      if (found === undefined) throw notFound('no result is kept here for this principal')
      return entryOf(found.result, found.file)
    },
    read: async ({ path, params }, { principal, signal }): Promise<readonly Content[]> => {
      if (path === searchPath && ownedBy(principal.id).length > 0) {
        const texts = entriesOf(principal).flatMap((entry) => {
          const { body } = find(entry.path, principal)?.file ?? {}
          return typeof body === 'string' ? [{ ...entry, uri: formatUri(parsed, entry.path), text: body }] : []
        })
        const found = await searchFiles(texts, address, params, signal)
        return [{ text: JSON.stringify(found), mimeType: foundMimeType }]
      }
      const found = find(path, principal)
      if (found === undefined) throw notFound('no result is kept here for this principal')
      const { title, mimeType, body } = found.file
      const facts = { title, mimeType, version: found.result.id }
      return [typeof body === 'string' ? { ...facts, text: body } : { ...facts, bytes: body }]
    },
    // A principal without results sees no sign of the mount, and a search over everything does not ask it.
    templates: async ({ principal }) => (entriesOf(principal).length === 0 ? [] : [search]),
    sees: (principal, path) =>
      path === searchPath ? entriesOf(principal).length > 0 : find(path, principal) !== undefined,
    close: async () => {
      clearTimeout(timer)
      results.clear()
    },
  }

  return {
    address,
    provider,
    put: ({ id: owner }, files) => {
      sweep()
      const bytes = files.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0)
      if (bytes > Math.min(maxBytes, maxTotalBytes)) return undefined
      for (
        let own = ownedBy(owner);
        own.length >= maxResults || bytesOf(own) + bytes > maxBytes;
        own = ownedBy(owner)
      ) {
        const [oldest] = own
        if (oldest === undefined) break
        results.delete(oldest.id)
      }
      while (results.size > 0 && bytesOf(results.values()) + bytes > maxTotalBytes) dropOldestOfLargest()
      const id = randomBytes(16).toString('base64url')
      const result = { id, owner, made: now(), bytes, files: new Map(files.map((file) => [file.name, file])) }
      results.set(id, result)
      sweep()
      return { uris: files.map(({ name }) => formatUri(parsed, `${id}/${name}`)), expires: expiryOf(result) }
    },
  }
}
