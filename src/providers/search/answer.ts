import { isResourceError } from '../../core/errors.ts'
import { followAbortFor } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'
import type { MountReader } from '../../core/mount-reader.ts'
import type { Principal } from '../../core/provider.ts'
import { type FoundHit, rowsMimeType, type SearchAnswer, splitAtMarks } from '../../core/search-answer.ts'
import { compileTemplate } from '../../core/template.ts'
import { decodeIfValid } from '../../core/uri.ts'
import { hasTextForm } from '../../search/feed-documents.ts'
import type { Allows, MountVisibility, SearchHit, SearchIndex } from '../../search/search-index.ts'
import type { SearchCall } from './query.ts'

const partTemplate = compileTemplate('{?as,lines}')

/** Kinds of document parts that a mount can return. */
export interface PartKinds {
  readonly lines: boolean
  readonly as: boolean
}

/**
 * Formats a hit. Its score is relative to the best visible hit: an absolute score would reveal how often the words occur in
 * hidden documents.
 */
export function formatHit(hit: SearchHit, best: number, { lines, as }: PartKinds, path: string): FoundHit {
  const { uri, mount, title, mimeType, heading, audience, priority, modified, link, revision, snippet } = hit
  const asText = as && hasTextForm(path, mimeType)
  const part = {
    ...(asText ? { as: 'text' } : {}),
    ...(lines && mimeType !== rowsMimeType ? { lines: `${hit.lines.start}-${hit.lines.end}` } : {}),
  }
  return {
    uri: uri + partTemplate.expand(part),
    document: uri,
    mount,
    ...defined({ title, mimeType, heading }),
    lines: hit.lines,
    score: best > 0 ? Math.round((hit.score / best) * 100) / 100 : 0,
    ...(modified === undefined ? {} : { modified: new Date(modified).toISOString() }),
    ...defined({ priority, audience, link, revision }),
    snippet,
  }
}

export function formatAnswerJson(answer: SearchAnswer): string {
  return `${JSON.stringify(answer, undefined, 2)}\n`
}

/** Formats an answer as Markdown, for a model or a person. Found text is quoted, because it is untrusted. */
export function formatAnswerMarkdown({ query, hits, next, total, notes, fallback }: SearchAnswer): string {
  const many = total === undefined ? `the first ${hits.length}` : String(total)
  const lines = [
    `# Found for “${escapeMarkdown(query)}”: ${next === undefined && total === undefined ? hits.length : many}`,
    '',
    ...(fallback === undefined ? [] : [fallback, '']),
  ]
  for (const [index, hit] of hits.entries()) {
    const name = escapeMarkdown(hit.title ?? documentName(hit.document))
    const under = hit.heading === undefined || hit.heading === hit.title ? '' : ` · ${escapeMarkdown(hit.heading)}`
    const source = hit.link === undefined ? '' : ` · [source](<${hit.link}>)`
    lines.push(`${index + 1}. [${name}](<${hit.uri}>)${under} (lines ${hit.lines.start}–${hit.lines.end})${source}`)
    const pieces = splitAtMarks(hit.snippet).map(({ text, marked }) => (marked ? bold(text) : escapeMarkdown(text)))
    lines.push(
      ...pieces
        .join('')
        .split(/\r\n|[\r\n\u2028\u2029]/)
        .map((line) => `   > ${line}`),
      '',
    )
  }
  if (hits.length === 0) lines.push('No document matches.', '')
  if (next !== undefined) lines.push(`There are more hits: search again with after=${next}.`, '')
  lines.push(...notes.map((note) => `Note: ${note}`))
  return `${lines.join('\n').trimEnd()}\n`
}

function bold(text: string): string {
  const [, before = '', inner = '', behind = ''] = /^(\s*)(.*?)(\s*)$/s.exec(text) ?? []
  return inner === '' || /[\r\n]/.test(inner) ? escapeMarkdown(text) : `${before}**${escapeMarkdown(inner)}**${behind}`
}

/** Escapes the characters that have a meaning in Markdown, anywhere or at the beginning of a line. */
function escapeMarkdown(text: string): string {
  return text.replace(
    /[\\`*_[\]<>#|~]|^[ \t]*[-+=]|^[ \t]*\d+[.)]/gm,
    (text) => `${text.slice(0, -1)}\\${text.slice(-1)}`,
  )
}

function documentName(uri: string): string {
  const last = uri.slice(uri.lastIndexOf('/') + 1)
  return decodeIfValid(last)
}

interface Finding {
  readonly hits: readonly SearchHit[]
  /** The score of the best visible hit. */
  readonly best: number
  /** The number of all hits, if it is known. */
  readonly total?: number
  readonly more: boolean
  readonly notes: readonly string[]
  /** Sentence to show above the hits when they match only single characters, as in `SearchAnswer`. */
  readonly fallback?: string
}

interface Searched {
  readonly index: SearchIndex
  readonly mounts: ReadonlyMap<string, MountReader>
  /** Whether the index of a mount is known to be current. */
  isCurrent(address: string): boolean
}

/** Maximum number of hits examined for one answer. */
const maxExaminedHits = 20_000
/** Maximum time for finding the hits of one answer, in milliseconds. */
const mostMs = 10_000
/** Time-out of a source whose answer only completes a hit, in milliseconds: whether the document still exists, and its templates. */
export const sourceTimeoutMs = 1000

const stoppedNote = 'Not all matches were examined. Use rarer words.'

export function allowsFor(mounts: Searched['mounts'], principal: Principal): Allows {
  const visibilities = new Map(
    [...mounts].map(([address, mount]): [string, MountVisibility] => {
      const callers = mount.callers(principal)
      return [address, { reach: mount.reach(principal), ...defined({ callers }) }]
    }),
  )
  const allows = ({ uri, mount }: Parameters<Allows>[0]): boolean => {
    const reach = visibilities.get(mount)?.reach
    if (reach === 'all') return true
    const reader = reach === 'some' ? mounts.get(mount) : undefined
    return reader?.allows(principal, reader.pathOf(uri)) ?? false
  }
  return Object.assign(allows, { mounts: visibilities })
}

/** Returns the mounts whose access rules are known. */
export async function knownMounts(mounts: Searched['mounts'], signal: AbortSignal): Promise<Searched['mounts']> {
  const answers = await Promise.all(
    [...mounts.values()].map(async ({ knows }) => {
      if (knows === undefined) return true
      const waiting = followAbortFor(signal, sourceTimeoutMs * 5)
      return knows(waiting.signal)
        .catch(() => false)
        .finally(waiting.release)
    }),
  )
  signal.throwIfAborted()
  return new Map([...mounts].filter((_, index) => answers[index]))
}

export async function findHits(
  { index, mounts, isCurrent }: Searched,
  { text, where, limit, after }: SearchCall,
  allows: Allows,
  signal: AbortSignal,
): Promise<Finding> {
  const notes: string[] = []
  const degraded = (why: string) => void notes.push(why)
  let why: string | undefined
  const fallback = (reason: string) => {
    why = reason
  }
  const there = createPresence(mounts, isCurrent, signal)
  const hits: SearchHit[] = []
  const lastHit = after + limit
  const end = performance.now() + mostMs
  let [looked, seen, best, ended] = [0, 0, 0, true]
  // One hit beyond the limit shows that there are more.
  for await (const hit of index.search({ text, where, limit, allows, degraded, fallback, signal })) {
    signal.throwIfAborted()
    if (++looked > maxExaminedHits || performance.now() > end) {
      notes.push(stoppedNote)
      ended = false
      break
    }
    if (!allows(hit) || !(await there(hit))) continue
    if (seen === 0) best = hit.score
    seen++
    if (seen > lastHit) {
      ended = false
      break
    }
    if (seen > after) hits.push(hit)
  }
  const fallbackMember = why === undefined || hits.length === 0 ? {} : { fallback: why }
  return { hits, best, ...(ended ? { total: seen } : {}), more: seen > lastHit, notes, ...fallbackMember }
}

/** Creates the check whether a document still exists, if the index may be out of date. Each document is checked once. */
function createPresence(mounts: Searched['mounts'], isCurrent: Searched['isCurrent'], signal: AbortSignal) {
  const visibilityByUri = new Map<string, Promise<boolean>>()
  /** The mounts that did not answer: they are not asked again. */
  const silent = new Set<string>()
  const look = async ({ uri, mount }: SearchHit): Promise<boolean> => {
    const reader = mounts.get(mount)
    if (reader === undefined || silent.has(mount)) return reader !== undefined
    const waiting = followAbortFor(signal, sourceTimeoutMs)
    try {
      return (await reader.find(reader.pathOf(uri), waiting.signal)) !== undefined
    } catch (error) {
      signal.throwIfAborted()
      if (isResourceError(error, 'not-found')) return false
      // If a source does not answer, its indexed documents stay.
      silent.add(mount)
      return true
    } finally {
      waiting.release()
    }
  }
  return (hit: SearchHit): Promise<boolean> => {
    if (isCurrent(hit.mount)) return Promise.resolve(true)
    const answer = visibilityByUri.get(hit.uri) ?? look(hit)
    visibilityByUri.set(hit.uri, answer)
    return answer
  }
}
