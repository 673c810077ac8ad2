import { defined } from '../core/kit/object.ts'
import type { Texts } from '../store/index.ts'
import { classAt, fold, otherClass, tokenize, widthAt, wordClass } from '../text/analyser.ts'
import { type FoundPassage, parseFoundPassage, titleTermPrefix } from './part.ts'
import type { Suggestion, SuggestQuery } from './search-index.ts'
import { createPassageFilter, toTextFilter, type Visibility, type VisibleSet } from './visible.ts'

/** Number of examined passages: first those with a word of the typed beginning in title or path, then others. */
const lookLimit = 400
/** Number of passages read at once. */
const together = 100
/** Maximum number of suggested words, their maximum length, and number of documents for each. */
const most = { words: 100, units: 48, uris: 50 }
/** Weights of a title that begins with the typed text, of a word in a title, and of a word in a text. */
const shares = { title: 8, inTitle: 4, text: 1 }

interface SuggestedTerm {
  readonly text: string
  readonly uris: Set<string>
  weight: number
}

/** Suggests words and titles that begin with the typed text, from the passages that contain them. */
export async function* suggestWords(
  texts: Texts,
  visibility: Visibility,
  query: SuggestQuery,
): AsyncGenerator<Suggestion> {
  const typed = fold(query.prefix.slice(0, 200).toWellFormed()).text.toLowerCase().trimStart()
  const terms = termsOf(typed)
  if (terms.length === 0) return
  const candidates = new Map<string, SuggestedTerm>()
  const passes = createPassageFilter(query.where)
  const visible = await visibility.of(query.allows, query.signal)
  for await (const passage of passagesWith(texts, terms, query, visible)) {
    query.signal?.throwIfAborted()
    if (passes(passage)) addCandidates(candidates, passage, typed)
  }
  const ordered = [...candidates.values()].sort((a, b) => b.weight - a.weight || (a.text < b.text ? -1 : 1))
  for (const { text, uris } of ordered.slice(0, most.words)) yield { text, uris: [...uris] }
}

interface TypedTerm {
  readonly term: string
  readonly prefix: boolean
}

/** Returns the terms of texts that begin as typed: whole terms, and the prefix of the last one. */
function termsOf(typed: string): readonly TypedTerm[] {
  const parts: { term: string; end: number; kind: string }[] = []
  tokenize(typed, (term, _start, end, kind) => {
    if (kind !== 'part') parts.push({ term, end, kind })
  })
  const pairs = parts.filter(({ kind }) => kind === 'bigram')
  const last = parts.at(-1)
  if (last === undefined) return []
  // The stem of a half-typed word need not be a prefix of the stem of the whole word.
  if (last.kind === 'word') {
    const end = /[\p{L}\p{N}\p{M}]+$/u.exec(typed)?.[0] ?? last.term
    const bare = end.length > 4 ? end.slice(0, -2) : end
    return [{ term: [...bare].slice(0, 32).join(''), prefix: true }]
  }
  if (pairs.length > 0) return pairs.map(({ term }) => ({ term, prefix: false }))
  return [{ term: last.term, prefix: last.kind !== 'single' }]
}

async function* passagesWith(
  texts: Texts,
  terms: readonly TypedTerm[],
  { where, allows }: SuggestQuery,
  visible: VisibleSet | undefined,
): AsyncGenerator<FoundPassage> {
  const filter = toTextFilter(where)
  const seenIds = new Set<number>()
  let remaining = lookLimit
  for (const before of [titleTermPrefix, '']) {
    if (remaining <= 0) return
    const ids = await texts.find({
      terms: terms.map(({ term, prefix }) => ({ term: before + term, prefix, weight: 1 })),
      ...defined({ where: filter }),
      ...(visible === undefined ? {} : { among: visible.set }),
      limit: 20_000,
    })
    const fresh = ids.filter((id) => !seenIds.has(id))
    for (let start = 0; start < fresh.length && remaining > 0; start += together) {
      for (const part of await texts.read(fresh.slice(start, start + together))) {
        seenIds.add(part.id)
        const passage = parseFoundPassage(part)
        // The visibility may have changed since it was checked.
        if (allows?.({ uri: passage.facts.uri, mount: passage.mount }) === false) continue
        if (remaining-- > 0) yield passage
      }
    }
  }
}

function addCandidates(
  candidates: Map<string, SuggestedTerm>,
  { facts, title, passage }: FoundPassage,
  typed: string,
): void {
  const { uri } = facts
  const words = new Set<string>()
  const add = (text: string, share: number) => {
    const key = fold(text).text.toLowerCase()
    if (words.has(key) || text.length > 4 * most.units) return
    words.add(key)
    const candidate = candidates.get(key) ?? { text, uris: new Set(), weight: 0 }
    // Several passages of one document count once.
    if (!candidate.uris.has(uri)) candidate.weight += share
    if (candidate.uris.size < most.uris) candidate.uris.add(uri)
    candidates.set(key, candidate)
  }
  const foldedTitle = fold(title).text
  if (foldedTitle.toLowerCase().startsWith(typed)) add(title, shares.title)
  for (const text of wordsWith(foldedTitle, typed)) add(text, shares.inTitle)
  for (const text of wordsWith(fold(`${passage.heading ?? ''}\n${passage.text}`).text, typed)) add(text, shares.text)
}

/** The words of a folded text that begin with the typed text, which may contain several words. */
function* wordsWith(text: string, typed: string): Generator<string> {
  const small = text.toLowerCase()
  // A letter that takes more units in lower case would shift the positions.
  if (small.length !== text.length) return
  for (let at = small.indexOf(typed); at !== -1; at = small.indexOf(typed, at + typed.length)) {
    if (!isBeginning(text, at)) continue
    const end = endOfWord(text, at + typed.length)
    if (end - at <= most.units) yield text.slice(at, end)
  }
}

/** Whether a word may begin at a position: where the kind of character changes. */
function isBeginning(text: string, at: number): boolean {
  if (at === 0) return true
  const kind = kindAt(text, at)
  const before = kindAt(text, text.charCodeAt(at - 1) >= 0xdc00 && text.charCodeAt(at - 1) <= 0xdfff ? at - 2 : at - 1)
  return kind !== before
}

/** Returns the end of the run of characters that have the same kind as the one before `from`. */
function endOfWord(text: string, from: number): number {
  const kind = kindAt(text, from - 1)
  let end = from
  while (kind !== otherClass && end - from <= most.units && continues(text, end, kind)) end += widthAt(text, end)
  return end
}

function continues(text: string, at: number, kind: CharacterKind): boolean {
  if (kindAt(text, at) === kind) return true
  return kind === wordClass && /[_.-]/.test(text[at] ?? '') && kindAt(text, at + 1) === wordClass
}

type CharacterKind = ReturnType<typeof classAt> | 'hiragana' | 'katakana'

function kindAt(text: string, at: number): CharacterKind {
  const character = text[at] ?? ''
  if (/[\u3041-\u309f]/.test(character)) return 'hiragana'
  return /[\u30a1-\u30ff]/.test(character) ? 'katakana' : classAt(text, at)
}
