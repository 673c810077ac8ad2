import { outlineOf } from './outline.ts'
import { pathOf } from './places.ts'
import type { Reading } from './reader.ts'
import { isXmlText, type Part, type Renderer } from './render.ts'
import type { Counter } from './tokens.ts'
import type { Candidate, Format, Level, LevelTokens, LineRange } from './types.ts'
import { windowsOf } from './windows.ts'

/** A resource at one level, as it would be shown, and what that takes. */
export interface Form {
  readonly part: Part
  readonly tokens: number
  readonly worth: number
  readonly ranges?: readonly LineRange[]
}

export interface Formed {
  readonly candidate: Candidate
  readonly reading?: Reading
  /** Smallest level first. One alone for what is required. */
  readonly forms: readonly Form[]
  readonly notes: readonly string[]
  /** What each level takes, where that is asked for. */
  readonly levels?: LevelTokens
}

/** Which share of a whole text each level is worth. */
const worth: Readonly<Record<Level, number>> = { link: 0.03, outline: 0.35, windows: 0.6, full: 1 }

export interface Forming {
  readonly counter: Counter
  readonly renderer: Renderer
  readonly format: Format
  readonly terms: ReadonlySet<string>
  /** What takes more tokens than this is of no use, unless it is required. */
  readonly most: number
  /** Whether what is required is counted at the other levels, too. */
  readonly countLevels?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** No token of any encoding here is longer, in bytes. */
export const longestToken = 128

/** All the forms that a resource can be taken in. Of what was not read, or is no text, there is a link alone. */
export async function formsOf(candidate: Candidate, reading: Reading | undefined, given: Forming): Promise<Formed> {
  const { resource, required } = candidate
  const bodies = bodiesOf(candidate, reading, given.terms)
  const wanted = required === undefined ? undefined : nearest(bodies, required)
  const counted = wanted === undefined || given.countLevels === true ? bodies : [wanted]
  const forms: Form[] = []
  const levels: Partial<Record<Level, number>> = {}
  for (const one of counted) {
    const { level, body, ranges } = one
    // It would take long to count what cannot fit in any case.
    if (one !== wanted && Buffer.byteLength(body ?? '') > longestToken * given.most) continue
    const part = { resource, level, ...(body === undefined ? {} : { body }) }
    const tokens = await given.counter.count(given.renderer.part(part, 1), given.signal)
    levels[level] = tokens
    if (wanted !== undefined && one !== wanted) continue
    forms.push({ part, tokens, worth: worth[level], ...(ranges === undefined ? {} : { ranges }) })
  }
  const notes: string[] = []
  const isText = reading !== undefined && 'text' in reading
  if (isText && wanted !== undefined && wanted.level !== required)
    notes.push(`at the level ${wanted.level}: there is no ${required} of it`)
  if (reading !== undefined && 'fault' in reading) notes.push(`a link alone: ${faults[reading.fault]}`)
  if (isText && given.format === 'xml' && !isXmlText(reading.text))
    notes.push('characters that XML cannot hold are replaced by U+FFFD')
  return {
    candidate,
    ...(reading === undefined ? {} : { reading }),
    forms,
    notes,
    ...(given.countLevels === true ? { levels } : {}),
  }
}

const faults = {
  'not-found': 'it is not there',
  'too-large': 'it is too large to be read as a whole',
  'not-text': 'it is no text',
  unavailable: 'it could not be read just now',
}

interface Body {
  readonly level: Level
  readonly body?: string
  readonly ranges?: readonly LineRange[]
}

function bodiesOf({ resource, found }: Candidate, reading: Reading | undefined, terms: ReadonlySet<string>): Body[] {
  const bodies: Body[] = [{ level: 'link' }]
  if (reading === undefined || !('text' in reading)) return bodies
  const { text } = reading
  bodies.push({ level: 'outline', body: outlineOf(text, pathOf(resource.uri), resource.mimeType ?? reading.mimeType) })
  const windows = windowsOf(text, terms, found)
  if (windows !== undefined) bodies.push({ level: 'windows', body: windows.text, ranges: windows.ranges })
  bodies.push({ level: 'full', body: text })
  return bodies
}

/** The level that was asked for, or the next below it that there is. */
function nearest(bodies: readonly Body[], level: Level): Body {
  const wanted = worth[level]
  return bodies.filter((body) => worth[body.level] <= wanted).at(-1) ?? { level: 'link' }
}
