import { createLruCache } from '../core/kit/lru.ts'
import { defined } from '../core/kit/object.ts'
import { outlineOf } from '../text/structure.ts'
import type { TextReading } from './memory.ts'
import { decodeUriPath, type ReadOutcome } from './reader.ts'
import { isXmlText, type RenderedPart, type Renderer } from './render.ts'
import type { TokenCounter } from './tokens.ts'
import type { Candidate, Format, Level, LevelTokens, LineRange } from './types.ts'
import { windowsOf } from './windows.ts'

/** A resource at one level, as it would be shown, and its tokens. */
export interface ResourceForm {
  readonly part: RenderedPart
  /** Number of tokens. Until `count` has been called, a lower bound of it. */
  tokens: number
  /** Value of this form as a share of the value of the whole text, from 0 to 1. */
  readonly worth: number
  readonly ranges?: readonly LineRange[]
  /** Counts the tokens. Undefined once they have been counted. */
  count?: (() => Promise<void>) | undefined
}

/** A candidate with its forms: the ways in which a context can contain it. */
export interface FormedResource {
  readonly candidate: Candidate
  readonly reading?: ReadOutcome
  /** Smallest level first. */
  readonly forms: readonly ResourceForm[]
  /** Approximate number of tokens of the whole text, within bounds. */
  readonly size: number
  readonly notes: readonly string[]
  readonly levels?: () => Promise<LevelTokens>
}

/**
 * The value of each level as a share of the whole text; the value of windows grows with their share of the scores. Figures:
 * decision 21.
 */
const worth: Readonly<Record<Level, number>> = { link: 0.01, outline: 0.05, windows: 0.15, full: 1 }
const worthOfScores = 0.75

/** Approximate number of tokens of a text. An unread text counts as a short one. Figures: decision 21. */
const sizes = { bytesPerToken: 4, least: 300, most: 4000 }
/**
 * `candidates`: number of leading candidates. `share`: the minimum size of each of them, as a share of the budget, so that small ones are
 * shown in full. Figures: decision 21.
 */
const leading = { candidates: 10, share: 1 / 8 }

/**
 * Sizes of windows in UTF-16 units. `ofLeaders`: for the first `leaders` candidates. `ofOthers`: for the other candidates. `required`: for
 * required windows. Above `smallBudget` tokens, all but the required sizes grow with the budget. Figures: decision 21.
 */
const windowSizes = { leaders: 20, ofLeaders: [2000, 6000, 16_000], ofOthers: [2000], required: [6000] }
const smallBudget = 8000

export interface FormOptions {
  readonly counter: TokenCounter
  readonly renderer: Renderer
  readonly format: Format
  readonly terms: ReadonlySet<string>
  /** Maximum number of tokens of a form. Larger forms are dropped, except links and the forms of required resources. */
  readonly most: number
  /** Whether a required resource is counted at the other levels, too. */
  readonly countLevels?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** Maximum length of a token in any encoding, in bytes. */
export const maxTokenBytes = 128

/**
 * Makes the forms of a resource; of a required one, only the form at its level. An unread or binary resource has only a link.
 *
 * @param index The index of the candidate, from 0: the leaders have larger windows.
 */
export async function formsOfCandidate(
  candidate: Candidate,
  reading: ReadOutcome | undefined,
  formOptions: FormOptions,
  index: number,
): Promise<FormedResource> {
  const { resource, required } = candidate
  const isText = reading !== undefined && 'text' in reading
  if (!isText && required === undefined && formOptions.countLevels !== true)
    return linkOf(candidate, reading, formOptions)
  const bodies = bodiesOf(candidate, reading, formOptions, index)
  const target = required === undefined ? undefined : nearest(bodies, required)
  const bodiesToCount = target === undefined || formOptions.countLevels === true ? bodies : [target]
  const forms: ResourceForm[] = []
  const all = Number.POSITIVE_INFINITY
  // Skip counting a form that cannot fit, because counting takes long.
  const countable = bodiesToCount.filter(
    (one) => one === target || !isLonger(one.body ?? '', maxTokenBytes * formOptions.most),
  )
  const partOf = ({ level, body }: Body): RenderedPart => ({ resource, level, ...defined({ body }) })
  for (const one of target === undefined ? countable : [target]) {
    const { level, ranges } = one
    const part = partOf(one)
    const form: ResourceForm = { part, tokens: 0, worth: one.worth ?? worth[level], ...defined({ ranges }) }
    if (one === target || level === 'link') form.tokens = await countPartTokens(part, one.digest, formOptions, all)
    else {
      // Most forms would not be chosen even with this lower bound, so they are not counted yet.
      form.tokens = minTokensOf(one.body ?? '')
      if (form.tokens > formOptions.most) continue
      form.count = async () => {
        form.tokens = await countPartTokens(part, one.digest, formOptions, formOptions.most)
        form.count = undefined
      }
    }
    forms.push(form)
  }
  const levels = async () => {
    const counts: Partial<Record<Level, number>> = {}
    for (const one of countable) counts[one.level] = await countPartTokens(partOf(one), one.digest, formOptions, all)
    return counts
  }
  const notes: string[] = []
  if (isText && target !== undefined && target.level !== required)
    notes.push(`at the level ${target.level}: there is no ${required} of it`)
  if (isText && reading.isOfDocument === true) notes.push('the text of the document')
  notes.push(...notesOf(reading))
  if (isText && formOptions.format === 'xml' && !isXmlText(reading.text))
    notes.push('characters that XML cannot hold are replaced by U+FFFD')
  return {
    candidate,
    ...defined({ reading }),
    forms,
    size: isText
      ? estimateTextTokens(reading.text, index < leading.candidates ? leading.share * formOptions.most : 0)
      : sizes.least,
    notes,
    ...(formOptions.countLevels === true ? { levels } : {}),
  }
}

async function linkOf(
  candidate: Candidate,
  reading: ReadOutcome | undefined,
  formOptions: FormOptions,
): Promise<FormedResource> {
  const part: RenderedPart = { resource: candidate.resource, level: 'link' }
  const tokens = await formOptions.counter.count(formOptions.renderer.part(part, 1), formOptions.signal)
  return {
    candidate,
    ...defined({ reading }),
    forms: [{ part, tokens, worth: worth.link }],
    size: sizes.least,
    notes: notesOf(reading),
  }
}

function notesOf(reading: ReadOutcome | undefined): readonly string[] {
  return reading !== undefined && 'fault' in reading ? [`a link alone: ${faults[reading.fault]}`] : []
}

function estimateTextTokens(text: string, least: number): number {
  return Math.min(sizes.most, Math.max(sizes.least, least, Buffer.byteLength(text) / sizes.bytesPerToken))
}

const faults = {
  'not-found': 'it does not exist',
  'too-large': 'it is too large to be read as a whole',
  'not-text': 'it is not text',
  unreadable: 'its text cannot be read: it is damaged, or holds only pictures',
  unavailable: 'it could not be read now',
}

interface Body {
  readonly level: Level
  readonly body?: string
  readonly ranges?: readonly LineRange[]
  /** Digest of the text and the settings that determine the body. Undefined when the body depends on the query. */
  readonly digest?: string
  /** Value as a share of the value of the whole text; undefined if the level determines it. */
  readonly worth?: number
}

/** 1: a letter, 2: a digit, 3: a unit that may be between the letters of one token, 0: any other ASCII unit. */
const kinds = Uint8Array.from({ length: 128 }, (_, unit) => {
  const character = String.fromCharCode(unit)
  return /[a-z]/i.test(character) ? 1 : /\d/.test(character) ? 2 : character === "'" ? 3 : 0
})

/** The number of tokens that a text has at least in any encoding: no token has letters of two words, or letters and digits. */
export function minTokensOf(text: string): number {
  let least = 0
  let before = 0
  for (let index = 0; index < text.length; index++) {
    const kind = kinds[text.charCodeAt(index)] ?? 3
    if ((kind === 1 || kind === 2) && kind !== before && before !== 3) least++
    before = kind
  }
  return least
}

/** Whether a text has more than `bytes` bytes in UTF-8. */
function isLonger(text: string, bytes: number): boolean {
  return 3 * text.length > bytes && Buffer.byteLength(text) > bytes
}

interface Count {
  readonly tokens: number
  /** Whether counting was stopped, because there were too many tokens. */
  readonly isStopped: boolean
  readonly bytes: number
}

/** Outlines and numbers of tokens by digests of texts. Sizes in bytes. */
const outlines = createLruCache<string>(8 * 2 ** 20, (outline) => 2 * outline.length + 200)
const counts = createLruCache<Count>(8 * 2 ** 20, ({ bytes }) => bytes)

function outlineFor({ text, sha256 }: TextReading, path: string, mimeType: string | undefined) {
  const digest = JSON.stringify([sha256, path.slice(path.lastIndexOf('/') + 1), mimeType])
  const body = outlines.get(digest) ?? outlineOf(text, path, mimeType)
  outlines.set(digest, body)
  return { body, digest }
}

/** The tokens of a part; if there are more than `most`, any number above it. */
async function countPartTokens(
  part: RenderedPart,
  digest: string | undefined,
  formOptions: FormOptions,
  most: number,
): Promise<number> {
  const { counter, renderer, format, signal } = formOptions
  const count = () => counter.count(renderer.part(part, 1), signal, most)
  if (digest === undefined) return count()
  const { resource, level } = part
  // The digest stands for the body in the key.
  const key = JSON.stringify([counter.encoding, format, level, digest, renderer.part({ resource, level }, 1)])
  const cachedCount = counts.get(key)
  if (cachedCount !== undefined && (!cachedCount.isStopped || cachedCount.tokens > most)) return cachedCount.tokens
  const tokens = await count()
  counts.set(key, { tokens, isStopped: tokens > most, bytes: 2 * key.length + 200 })
  return tokens
}

function bodiesOf(
  { resource, found, required }: Candidate,
  reading: ReadOutcome | undefined,
  { terms, most }: FormOptions,
  index: number,
): Body[] {
  const bodies: Body[] = [{ level: 'link' }]
  if (reading === undefined || !('text' in reading)) return bodies
  const { text, sha256 } = reading
  const path = decodeUriPath(resource.uri)
  const mimeType = reading.isOfDocument === true ? reading.mimeType : (resource.mimeType ?? reading.mimeType)
  bodies.push({ level: 'outline', ...outlineFor(reading, path, mimeType) })
  const source = { text, path, mimeType, found }
  const growth = Math.max(1, most / smallBudget)
  const optional = (index < windowSizes.leaders ? windowSizes.ofLeaders : windowSizes.ofOthers).map(
    (size) => growth * size,
  )
  for (const { text: body, ranges, share } of windowsOf(
    source,
    terms,
    required === undefined ? optional : windowSizes.required,
  ))
    bodies.push({ level: 'windows', body, ranges, worth: worth.windows + worthOfScores * share })
  bodies.push({ level: 'full', body: text, digest: sha256 })
  return bodies
}

/** The body at the requested level, or at the next lower one that exists. */
function nearest(bodies: readonly Body[], level: Level): Body {
  const worthOfLevel = worth[level]
  return bodies.filter((body) => worth[body.level] <= worthOfLevel).at(-1) ?? { level: 'link' }
}
