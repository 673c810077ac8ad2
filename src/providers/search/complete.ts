import type { MountReader } from '../../core/mount-reader.ts'
import type { Completion, CompletionRequest } from '../../core/provider.ts'
import { isOf } from '../../search/feed-document.ts'
import type { Allows, SearchIndex, Suggestion } from '../../search/search-index.ts'

/** Maximum number of values returned, and of values examined. */
const mostValues = 100
const mostLooks = 2000
/** Maximum number of documents examined to find one that the principal may see. */
const mostDocuments = 200

interface Known {
  readonly index: SearchIndex
  readonly mounts: ReadonlyMap<string, MountReader>
  readonly allows: Allows
  readonly signal: AbortSignal
}

const fixed: Readonly<Record<string, readonly string[]>> = {
  limit: ['10', '20', '50', '100'],
  since: ['1d', '7d', '30d', '365d'],
  minPriority: ['0.25', '0.5', '0.75', '1'],
  audience: ['assistant', 'user'],
  as: ['json', 'markdown'],
}

/** Completes a variable of a search from visible documents: words and titles, mounts, MIME types that occur. */
export async function completeSearch({ argument }: CompletionRequest, known: Known): Promise<Completion> {
  const { name, value } = argument
  if (name === 'query' || name === 'q') return completeText(value, known)
  if (name === 'mount') return listed(await visibleMounts(value, known))
  if (name === 'mime') {
    const types = await known.index.mimeTypes(known)
    return listed(types.filter((type) => type.startsWith(value.toLowerCase())))
  }
  return listed((fixed[name] ?? []).filter((one) => one.startsWith(value)))
}

function listed(values: readonly string[]): Completion {
  return { values: values.slice(0, mostValues), total: values.length, hasMore: values.length > mostValues }
}

/** The last word is completed, and the whole as the beginning of a title. */
async function completeText(value: string, known: Known): Promise<Completion> {
  const { index, allows, signal } = known
  const text = value.replace(/[\p{Cc}\u2028\u2029]/gu, ' ').slice(0, 200)
  const [, head = '', last = ''] = /^(.*\s)?(\S*)$/su.exec(text) ?? []
  const whole = await take(index.suggest({ prefix: text, allows, signal }), known)
  if (head.trim() === '' || last === '') return whole
  const words = await take(index.suggest({ prefix: last, allows, signal }), known)
  const values = new Set([...whole.values, ...words.values.map((word) => head + word)])
  return {
    values: [...values].slice(0, mostValues),
    hasMore: values.size > mostValues || whole.hasMore === true || words.hasMore === true,
  }
}

/** The mounts with a visible document, in their order. */
async function take(suggestions: AsyncIterable<Suggestion>, known: Known): Promise<Completion> {
  const values = new Set<string>()
  let looks = 0
  for await (const { text, uris } of suggestions) {
    known.signal.throwIfAborted()
    if (++looks > mostLooks) return { values: [...values], hasMore: true }
    if (values.has(text) || !(await isVisible(uris, known))) continue
    if (values.size === mostValues) return { values: [...values], hasMore: true }
    values.add(text)
  }
  return { values: [...values], total: values.size, hasMore: false }
}

async function isVisible(uris: AsyncIterable<string>, { mounts, allows }: Known): Promise<boolean> {
  let looks = 0
  for await (const uri of uris) {
    const mount = [...mounts.keys()].find((address) => isOf(uri, address))
    if (mount !== undefined && allows({ uri, mount })) return true
    if (++looks === mostDocuments) return false
  }
  return false
}

/** The mounts in which the caller may see something that is indexed. */
function visibleMounts(typed: string, { index, mounts, allows, signal }: Known): Promise<readonly string[]> {
  const begun = [...mounts.keys()].filter((address) => address.startsWith(typed))
  return index.mounts(begun, { allows, signal })
}
