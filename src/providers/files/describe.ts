import type { BigIntStats } from 'node:fs'
import { isResourceError } from '../../core/errors.ts'
import { createRecent } from '../../core/kit/lru.ts'
import { isText, wholeCharacters } from '../../core/kit/utf8.ts'
import { baseName } from '../../core/path.ts'
import type { Entry } from '../../core/provider.ts'
import { directoryMimeType } from '../../core/view.ts'
import { headingBytes, headingIn } from '../../text/heading.ts'
import type { FileFacts } from './looked.ts'
import { mimeTypeOf, noFacts, type RuleFacts } from './media.ts'
import type { Place, Places } from './place.ts'
import { isSettled, stampOf } from './stats.ts'

export function factsOf(stats: BigIntStats): FileFacts {
  return { size: Number(stats.size), modified: Number(stats.mtimeMs), version: stampOf(stats) }
}

/** Returns the entry of a file, without its heading. Opens nothing. */
export function describeFile(path: string, { size, modified, version }: FileFacts, { facts }: RuleFacts): Entry {
  const mimeType = facts.mimeType ?? mimeTypeOf(baseName(path))
  // Fast path without rules: it avoids the spread.
  if (facts === noFacts && mimeType !== undefined) return { path, mimeType, size, modified, version }
  if (mimeType === undefined) return { path, ...facts, size, modified, version }
  return { path, ...facts, mimeType, size, modified, version }
}

export function describeDirectory(path: string, stats: BigIntStats): Entry {
  // A creation, deletion or rename in the directory changes its stamp.
  const version = isSettled(stats, Date.now()) ? { version: stampOf(stats) } : {}
  return { path, mimeType: directoryMimeType, modified: Number(stats.mtimeMs), ...version }
}

/** Cache of the titles that files give themselves, by version. */
export interface Headings {
  /** Returns the entry with the first heading of its file as title, if it has one. `open` returns the file, held open. */
  title(entry: Entry, open: () => Promise<Place>, signal: AbortSignal): Promise<Entry>
}

export function createHeadings(places: Places): Headings {
  const titles = createRecent<{ readonly title: string | undefined }>(20_000)

  const read = async (entry: Entry, open: () => Promise<Place>, signal: AbortSignal): Promise<string | undefined> => {
    const place = await open()
    try {
      // The file was replaced meanwhile: the next listing reads its heading.
      if (!place.stats.isFile() || stampOf(place.stats) !== entry.version) return undefined
      return await readHeading(places, place, signal)
    } finally {
      place.close()
    }
  }

  return {
    title: async (entry, open, signal) => {
      const key = `${entry.version}/${entry.path}`
      let known = titles.get(key)
      try {
        known ??= { title: await read(entry, open, signal) }
      } catch (error) {
        if (isResourceError(error, 'not-found')) return entry
        throw error
      }
      titles.set(key, known)
      return known.title === undefined ? entry : { ...entry, title: known.title }
    },
  }
}

async function readHeading(places: Places, place: Place, signal: AbortSignal): Promise<string | undefined> {
  const handle = await places.open(place, signal)
  try {
    const buffer = Buffer.alloc(headingBytes)
    const length = await handle.read(buffer, { offset: 0, length: headingBytes, position: 0 }, signal)
    const head = buffer.subarray(0, length)
    const text = head.subarray(0, wholeCharacters(head).to)
    // The title of a file in another encoding is found by the wrapper that decodes it.
    return isText(text) ? headingIn(text.toString()) : undefined
  } finally {
    handle.close()
  }
}
