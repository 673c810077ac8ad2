import { isResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { createRecent } from '../../core/recent.ts'
import { compileIgnores, type Ignores, ignoreEverything } from './ignores.ts'
import { lookAt } from './look.ts'
import { isSettled, stampOf } from './permit.ts'
import type { Place, Places } from './place.ts'
import type { Pool } from './pool.ts'

/** The rules that hold inside a directory, given those of the directory above. The same rules are the same object. */
export interface IgnoreFiles {
  inside(place: Place, path: string, above: Ignores | undefined, signal: AbortSignal): Promise<Ignores | undefined>
}

/** How much of a .gitignore is read, in bytes. */
const maxBytes = 512 * 1024
/**
 * How long the patterns with wildcards may be that a path is compared with, in steps of automata (about one for each
 * character), those of all directories above it together.
 */
const maxSteps = 32_768
/** For how long `.git/info/exclude`, which hardly ever changes, is not looked at again. */
const excludeAge = 1000

interface Known {
  readonly above: Ignores | undefined
  readonly stamp: string
  readonly settled: boolean
  readonly text: string
  readonly ignores: Ignores | undefined
}

/** Reads and compiles .gitignore files, of which it remembers 10,000. `.git/info/exclude` of the root counts as outermost. */
export function createIgnoreFiles(places: Places, pool: Pool, log: Log): IgnoreFiles {
  const files = createRecent<Known>(10_000)
  let excludes: { readonly time: number; readonly ignores: Ignores | undefined } | undefined

  /** The bytes of a file at one or more names below a directory, as characters, read without following a link; `''` if there is none. */
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
      log('warn', 'a file of ignore rules is too large: the rest of it is passed over', { path, limit: maxBytes })
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
    // Only to see whether it changed: what it holds is read without following anything.
    const stats = await lookAt(place, file.names.join('/'), pool, signal)
    if (stats === undefined || !stats.isFile()) return above
    const stamp = stampOf(stats)
    const known = files.get(path)
    if (known?.settled && known.stamp === stamp && known.above === above) return known.ignores
    const settled = isSettled(stats, Date.now())
    const text = await readText(place, file.names, path, signal).catch((error: unknown) => {
      // As git does, which warns: what cannot be read or is a link has no rules.
      if (isResourceError(error, 'not-found')) return ''
      throw error
    })
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
    if (excludes !== undefined && Math.abs(time - excludes.time) < excludeAge) return excludes.ignores
    const slow: Place = { ...root, local: false }
    excludes = { time, ignores: await load(slow, { names: ['.git', 'info', 'exclude'], base: '' }, undefined, signal) }
    return excludes.ignores
  }

  return {
    inside: async (place, path, above, signal) => {
      const around = path === '' ? await loadExcludes(place, signal) : above
      return load(place, { names: ['.gitignore'], base: path }, around, signal)
    },
  }
}
