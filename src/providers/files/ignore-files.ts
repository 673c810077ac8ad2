import { fallbackTo } from '../../core/errors.ts'
import { singleFlight } from '../../core/kit/abort.ts'
import { createRecent } from '../../core/kit/lru.ts'
import type { Log } from '../../core/log.ts'
import { type Place, type Places, type Pool, untilAbort } from './access.ts'
import { compileIgnores, type Ignores, ignoreEverything } from './ignores.ts'
import { createDirectoryFacts, isSettled, lookAt, stampOf } from './stats.ts'

export type IgnoreFiles = ReturnType<typeof createIgnoreFiles>

/** Name of the file with the ignore rules of a directory. */
export const ignoreFileName = '.gitignore'
/** Maximum number of bytes read of a .gitignore. */
const maxBytes = 512 * 1024
/**
 * Maximum total length of the patterns with wildcards that one path is compared with, those of all parent directories included, in automaton
 * steps (about one per character).
 */
const maxSteps = 32_768
/** Time that `.git/info/exclude`, which hardly ever changes, is cached, in milliseconds. */
const excludeMaxAgeMs = 1000
/** Age from which `.git/info/exclude` is loaded again in the background, in milliseconds: under load no request waits for it. */
const excludeReloadAgeMs = 500
const never = new AbortController().signal

/** The fact that is recorded for a directory without a file of ignore rules. */
const noRules = 'no .gitignore'

interface CachedIgnores {
  readonly above: Ignores | undefined
  readonly stamp: string
  readonly settled: boolean
  readonly text: string
  readonly ignores: Ignores | undefined
}

/** Reads and compiles .gitignore files, and caches 10,000 of them. Any of them overrides `.git/info/exclude` of the root. */
export function createIgnoreFiles(places: Places, pool: Pool, log: Log) {
  const facts = createDirectoryFacts()
  const files = createRecent<CachedIgnores>(10_000)
  let excludes: { readonly time: number; readonly ignores: Ignores | undefined } | undefined

  /** Reads a file below a directory, one character per byte, without following links. Returns `''` if it is not a regular file. */
  const readText = async (
    place: Place,
    names: readonly string[],
    path: string,
    signal: AbortSignal,
  ): Promise<string> => {
    const [name, ...rest] = names
    if (name === undefined) return readStart(places, place, path, signal)
    const child = await places.child(place, name, { directory: rest.length > 0 }, signal)
    try {
      return await readText(child, rest, path, signal)
    } finally {
      child.close()
    }
  }

  const readStart = async (places: Places, place: Place, path: string, signal: AbortSignal): Promise<string> => {
    if (!place.stats.isFile()) return ''
    const handle = await places.open(place, signal)
    try {
      const buffer = Buffer.alloc(Math.min(Number(place.stats.size), maxBytes))
      let length = 0
      for (let read = 1; read > 0 && length < buffer.length; length += read)
        read = await handle.read(buffer, { offset: length, length: buffer.length - length, position: length }, signal)
      if (place.stats.size <= maxBytes) return buffer.toString('latin1', 0, length)
      log('warn', 'a file of ignore rules is too large: the rest of it is ignored', { path, limit: maxBytes })
      return buffer.toString('latin1', 0, buffer.lastIndexOf('\n', length) + 1)
    } finally {
      handle.close()
    }
  }

  const load = async (
    place: Place,
    file: { readonly names: readonly string[]; readonly base: string },
    above: Ignores | undefined,
    signal: AbortSignal,
  ): Promise<Ignores | undefined> => {
    const path = `${file.base}${file.names.join('/')}`
    // This may follow links, so it only tells whether the file changed. The content is read without following links.
    const stats = await lookAt(place, file.names.join('/'), pool, signal)
    if (stats === undefined && file.names.length === 1) facts.note(place, noRules)
    if (stats === undefined || !stats.isFile()) return above
    const stamp = stampOf(stats)
    const known = files.get(path)
    if (known?.settled && known.stamp === stamp && known.above === above) return known.ignores
    const settled = isSettled(stats, Date.now())
    // As in git, a link or an unreadable file has no rules.
    const text = await readText(place, file.names, path, signal).catch(fallbackTo('', 'not-found'))
    const same = known !== undefined && known.above === above && known.text === text
    const ignores = same ? known.ignores : text.trim() === '' ? above : compile(text, path, file.base, above)
    files.set(path, { above, stamp, settled, text, ignores })
    return ignores
  }

  const compile = (text: string, path: string, base: string, above: Ignores | undefined): Ignores => {
    const ignores = compileIgnores(text, base, above, { file: path })
    if (ignores.steps <= maxSteps) return ignores
    log('warn', 'a file of ignore rules has too many wildcards: nothing in its directory is served', {
      path,
      limit: maxSteps,
    })
    return ignoreEverything(base, above)
  }

  const loadExcludes = async (root: Place, signal: AbortSignal): Promise<Ignores | undefined> => {
    const time = Date.now()
    const ageMs = excludes === undefined ? Number.POSITIVE_INFINITY : Math.abs(time - excludes.time)
    if (excludes !== undefined && ageMs < excludeReloadAgeMs) return excludes.ignores
    const loading = loadingExcludes.run(root, time)
    if (excludes === undefined || ageMs >= excludeMaxAgeMs) return untilAbort(loading, signal)
    // The error is ignored here: once the rules are too old, a request waits for the load, and reports its error.
    loading.catch(() => {})
    return excludes.ignores
  }

  /** All waiting callers share one load, which takes several calls of the pool. */
  const loadingExcludes = singleFlight(async (root: Place, time: number): Promise<Ignores | undefined> => {
    root.keep()
    const slow: Place = { ...root, local: false }
    const file = { names: ['.git', 'info', 'exclude'], base: '' }
    const ignores = await load(slow, file, undefined, never).finally(root.close)
    excludes = { time, ignores }
    return ignores
  })

  return {
    /** Returns the rules that apply inside a directory, given those of its parent directory. Unchanged rules are the same object. */
    inside: async (place: Place, path: string, above: Ignores | undefined, signal: AbortSignal) => {
      const around = path === '' ? await loadExcludes(place, signal) : above
      if (facts.of(place)?.has(noRules)) return around
      return load(place, { names: [ignoreFileName], base: path }, around, signal)
    },
  }
}
