import type { ObjectName } from './model.ts'

/** The characters that are always escaped, `~` first. */
export const escapedCharacters: readonly string[] = [
  '~',
  '/',
  ...codes(0x00, 0x1f),
  ...codes(0x7f, 0x9f),
  '\u2028',
  '\u2029',
]

function codes(first: number, last: number): readonly string[] {
  return Array.from({ length: last - first + 1 }, (_, i) => String.fromCharCode(first + i))
}

const special = /[~/\p{Cc}\u2028\u2029]/gu

function escapeBytes(text: string): string {
  return Buffer.from(text).toString('hex').replace(/../g, '~$&')
}

/**
 * Returns the path segment for a name. Characters and names that a segment cannot hold (`/`, control characters, `.`, `..`) and `~` itself are
 * written as `~` and the two hexadecimal digits of each UTF-8 byte; the empty name is `~` alone.
 */
export function nameToSegment(name: string): string {
  if (name === '') return '~'
  if (name === '.' || name === '..') return escapeBytes(name)
  return name.replace(special, escapeBytes)
}

/** Returns `undefined` for a segment that no name has. */
export function segmentToName(segment: string): string | undefined {
  if (segment === '') return undefined
  if (segment === '~') return ''
  if (/~(?![0-9a-f]{2})/.test(segment)) return undefined
  const name = segment.replace(/(?:~[0-9a-f]{2})+/g, (bytes) =>
    Buffer.from(bytes.replaceAll('~', ''), 'hex').toString('utf8'),
  )
  // Each name has exactly one segment: a needless escape and invalid UTF-8 are refused.
  return nameToSegment(name) === segment ? name : undefined
}

/** Returns the path of the directory of an object, with `/` at its end. */
export function objectDirectory({ schema, name }: ObjectName, only: string | undefined): string {
  return only === undefined ? `${nameToSegment(schema)}/${nameToSegment(name)}/` : `${nameToSegment(name)}/`
}

/** Returns the path segment for the key of a row: its parts, escaped as names are, with `,` between them. */
export function rowSegmentOf(key: readonly string[]): string {
  return key.map((part) => nameToSegment(part).replaceAll(',', '~2c')).join(',')
}

/** Splits a segment into the parts of a key with this number of columns; `undefined` if no key has this segment. */
export function rowKeyOf(segment: string, columns: number): readonly string[] | undefined {
  const parts = segment.split(',').map((part) => segmentToName(part.replaceAll('~2c', ',')))
  if (parts.length !== columns || parts.some((part) => part === undefined)) return undefined
  const key = parts as readonly string[]
  return rowSegmentOf(key) === segment ? key : undefined
}

/** Returns the bytes of a base64 text as hexadecimal digits; `undefined` for any other text. */
export function hexOfBase64(text: string): string | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes.toString('hex') : undefined
}

export type DatabasePath =
  | { readonly kind: 'overview'; readonly schema?: string }
  | { readonly kind: 'extensions' }
  | { readonly kind: ObjectLeaf; readonly name: ObjectName; readonly key: string }
  | { readonly kind: 'row'; readonly name: ObjectName; readonly key: string; readonly row: string }

/** Possible last segments of an object's paths, in path order. */
export const leafNames = ['enum', 'function', 'rows', 'schema', 'schema.sql'] as const
export type ObjectLeaf = (typeof leafNames)[number]

export function nameSegmentCount(only: string | undefined): 1 | 2 {
  return only === undefined ? 2 : 1
}

/** Parses a path; `undefined` when nothing can exist there. */
export function parseDatabasePath(path: string, only: string | undefined): DatabasePath | undefined {
  if (path === 'overview') return only === undefined ? { kind: 'overview' } : { kind: 'overview', schema: only }
  if (path === 'extensions') return { kind: 'extensions' }
  const segments = path.split('/')
  const depth = nameSegmentCount(only)
  const names = segments.slice(0, depth).map(segmentToName)
  const [schema, name] = only === undefined ? names : [only, ...names]
  if (schema === undefined) return undefined
  if (segments.length === 2 && depth === 2 && segments[1] === 'overview') return { kind: 'overview', schema }
  const [leaf, row, ...rest] = segments.slice(depth)
  if (name === undefined || leaf === undefined || rest.length > 0) return undefined
  const at = { name: { schema, name }, key: `${segments.slice(0, depth).join('/')}/` }
  if (row !== undefined) return leaf === 'rows' && row !== '' ? { kind: 'row', ...at, row } : undefined
  const kind = leafNames.find((one) => one === leaf)
  return kind === undefined ? undefined : { kind, ...at }
}

type Load<T> = (names: readonly ObjectName[], signal: AbortSignal) => Promise<readonly T[]>

interface Waiting<T> {
  readonly name: ObjectName
  readonly settle: (outcome: { readonly value: T | undefined } | { readonly error: unknown }) => void
}

/** Maximum number of names per query, and of concurrent queries. */
const [most, concurrent] = [200, 2]

/**
 * Batches concurrent requests into queries for many objects. A request that arrives while queries run waits for the next query:
 * no answer is older than its request.
 *
 * Returns a function that resolves to the object of a name, or to `undefined` if there is none. It rejects with the reason of its signal
 * once that aborts.
 */
export function batchRequests<T extends ObjectName>(load: Load<T>) {
  const queue = new Set<Waiting<T>>()
  const leaving = new WeakMap<Waiting<T>, () => void>()
  let running = 0
  let planned = false

  const flush = (): void => {
    planned = false
    while (queue.size > 0 && running < concurrent) void run([...queue].slice(0, most))
  }

  const plan = (): void => {
    if (planned) return
    planned = true
    setImmediate(flush)
  }

  /** Runs the query of a batch. It is aborted when no caller waits for it any more. */
  const run = async (batch: readonly Waiting<T>[]): Promise<void> => {
    running++
    const closeController = new AbortController()
    let left = batch.length
    for (const one of batch) {
      queue.delete(one)
      leaving.set(one, () => {
        if (--left === 0) closeController.abort()
      })
    }
    try {
      const names = new Map(batch.map(({ name }) => [objectNameKey(name), name]))
      const items = await load([...names.values()], closeController.signal)
      const byName = new Map(items.map((one) => [objectNameKey(one), one]))
      for (const { name, settle } of batch) settle({ value: byName.get(objectNameKey(name)) })
    } catch (error) {
      for (const { settle } of batch) settle({ error })
    } finally {
      running--
      if (queue.size > 0) plan()
    }
  }
  return (name: ObjectName, signal: AbortSignal): Promise<T | undefined> =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const waiting: Waiting<T> = {
        name,
        settle: (outcome) => {
          signal.removeEventListener('abort', leave)
          if ('error' in outcome) reject(outcome.error)
          else resolve(outcome.value)
        },
      }
      const leave = () => {
        queue.delete(waiting)
        leaving.get(waiting)?.()
        reject(signal.reason)
      }
      signal.addEventListener('abort', leave, { once: true })
      queue.add(waiting)
      plan()
    })
}

/** Returns a text that is the same for equal names only, as the key of a map. */
export function objectNameKey({ schema, name }: ObjectName): string {
  return JSON.stringify([schema, name])
}

/** Returns the names that a prefix of paths selects; `undefined` if there can be none. `only`: the schema of all paths. */
export function parseNamePrefix(prefix: string, only: string | undefined) {
  const names = prefix.split('/').slice(0, -1).map(segmentToName)
  if (names.includes(undefined)) return undefined
  const [schema, name, ...rest] = only === undefined ? names : [only, ...names]
  return rest.length > 0 ? undefined : { schema, name }
}
