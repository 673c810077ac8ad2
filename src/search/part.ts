import { createLruCache } from '../core/kit/lru.ts'
import { defined } from '../core/kit/object.ts'
import { baseName } from '../core/path.ts'
import { pathInMount } from '../core/uri.ts'
import type { FoundPart, NewText, TextSet, Texts } from '../store/index.ts'
import { analyserVersion, fold, isWordTerm, tokenize } from '../text/analyser.ts'
import { impactOf, wordBm25 } from '../text/relevance.ts'
import { type Passage, passagesOf, textKind } from '../text/structure.ts'
import type { DocumentFacts, SearchDocument } from './search-index.ts'

/** Maximum number of terms of one passage; the first one of a document has twice as many, with those of the whole document. */
const mostTerms = 2000

/** Stored form of a passage: text, first and last line, heading. */
interface Stored {
  readonly t: string
  readonly s: number
  readonly e: number
  readonly h?: string
}

/** Prefix of a second entry for a term of the title or path, which the first passage of a document has. */
export const titleTermPrefix = '!'

/** Converts a document to the format of the store. It yields to the event loop now and then. */
export async function toNewText(document: SearchDocument, pause: () => Promise<void>): Promise<NewText> {
  const { version, text, mount, firstLine = 1, ...facts } = document
  const inDocument = (passage: Passage): Passage => ({
    ...passage,
    start: passage.start + firstLine - 1,
    end: passage.end + firstLine - 1,
  })
  const path = pathInMount(document.uri, mount)
  const about = [documentTitle(facts, path), path]
  const names = namedIn(about)
  const parts: Cut[] = []
  const whole = new Map<string, number>()
  for (const passage of passagesOf(text, textKind(facts.mimeType, path))) {
    parts.push(indexPassage(inDocument(passage), names, whole))
    await pause()
  }
  if (parts.length === 0) parts.push(indexPassage({ text: '', start: 1, end: 1 }, names, whole))
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const ofDocument = [
    ...[...names.terms].map((term) => titleTermPrefix + term),
    ...documentTerms(whole, length, names.words),
  ]
  const { mimeType, audience, priority, modified } = facts
  const labels = {
    mount,
    ...defined({ mimeType, audience, priority, modified: modified && Math.floor(modified) }),
  }
  return {
    key: document.uri,
    version,
    edition: analyserVersion,
    labels,
    value: JSON.stringify(facts).replaceAll('\\u0000', ''),
    parts: parts.map(({ stored, terms, length: each }, index) => ({
      value: JSON.stringify(stored),
      terms: index > 0 ? terms : [...terms, ...ofDocument.slice(0, mostTerms)],
      length: each,
    })),
  }
}

interface Cut {
  readonly stored: Stored
  readonly terms: readonly string[]
  readonly length: number
}

interface NameTerms {
  readonly terms: ReadonlySet<string>
  readonly words: ReadonlySet<string>
}

function namedIn(about: readonly string[]): NameTerms {
  const terms = new Set<string>()
  const words = new Set<string>()
  for (const text of about)
    tokenize(fold(text.toWellFormed()).text, (term, _start, _end, kind) => {
      terms.add(term)
      if (kind === 'word' || kind === 'part') words.add(term)
    })
  return { terms, words }
}

/** @param whole Frequency of each word in the document. This call adds to it. */
function indexPassage({ text, start, end, heading }: Passage, names: NameTerms, whole: Map<string, number>): Cut {
  const counts = new Map<string, number>()
  let length = 0
  // Both engines can store all of Unicode except NUL.
  const plain = text.toWellFormed().replaceAll('\0', ' ')
  tokenize(fold(plain).text, (term, _start, _end, kind) => {
    counts.set(term, (counts.get(term) ?? 0) + 1)
    if (kind !== 'tail') length++
  })
  for (const [term, count] of counts) if (isWordTerm(term)) addTo(whole, term, count)
  const terms = [...new Set([...counts.keys(), ...names.terms])].slice(0, mostTerms)
  const value: Stored = { t: plain, s: start, e: end, ...defined({ h: heading?.toWellFormed() }) }
  return { stored: value, terms, length }
}

function addTo(counts: Map<string, number>, term: string, count: number): void {
  counts.set(term, (counts.get(term) ?? 0) + count)
}

export interface FoundPassage {
  readonly id: number
  /** Index of the passage in the document, from 0. */
  readonly index: number
  readonly mount: string
  readonly facts: DocumentFacts
  readonly passage: Passage
  /** Number of terms of the passage. */
  readonly length: number
  /** Number of passages of the document. */
  readonly passages: number
  /** The path below the mount. */
  readonly path: string
  readonly title: string
}

/** Number of units of the store in a weight of 1: the store takes weights as integers. */
export const weightUnit = 1000

export function storedWeight(weight: number): number {
  return Math.max(1, Math.round(weight * weightUnit))
}

/** Adds to each term of several groups the number of passages with it, with one request to the store. */
export async function countGroups<Term extends { readonly term: string }>(
  texts: Texts,
  groups: readonly (readonly Term[])[],
  among: TextSet | undefined,
  beginnings: readonly string[],
): Promise<readonly (readonly (Term & { readonly count: number })[])[]> {
  const all = groups.flatMap((group) => group.map(({ term }) => term))
  const counts = all.length === 0 ? [] : await texts.counts(all, among, beginnings)
  let at = 0
  return groups.map((group) => group.map((term) => ({ ...term, count: counts[at++] ?? 0 })))
}

export function parseFoundPassage({
  id,
  key,
  place: index,
  mount,
  length,
  value,
  text,
  parts,
}: FoundPart): FoundPassage {
  const { t, s, e, h } = JSON.parse(value) as Stored
  const { facts, path, title } = parseStoredDocument(key, mount, text)
  const passage = { text: t, start: s, end: e, ...defined({ heading: h }) }
  return { id, index, mount, facts, passage, length, passages: parts, path, title }
}

interface ParsedDocument extends Pick<FoundPassage, 'mount' | 'facts' | 'path' | 'title'> {
  /** The value from which it was parsed. */
  readonly text: string
}

const cache = createLruCache<ParsedDocument>(500)

function parseStoredDocument(key: string, mount: string, text: string): ParsedDocument {
  const parsedDocument = cache.get(key)
  if (parsedDocument?.text === text && parsedDocument.mount === mount) return parsedDocument
  const facts = JSON.parse(text) as DocumentFacts
  const path = pathInMount(facts.uri, mount)
  const document = { text, mount, facts, path, title: documentTitle(facts, path) }
  cache.set(key, document)
  return document
}

/** The text of a stored passage, with its headings. */
export function textOfPart(value: string): string {
  const { t, h } = JSON.parse(value) as Stored
  return h === undefined ? t : `${h}\n${t}`
}

function documentTitle({ title }: Partial<DocumentFacts>, path: string): string {
  return title ?? baseName(path)
}

/**
 * Parameters of the impact of a word in a whole document, quantized to small integers (Anh and Moffat, SIGIR 2006): BM25 without the rarity
 * of the word. Figures: decision 12.
 */
const impact = { levels: 8, averageLength: 800, about: 3 }
const perLevel = (wordBm25.k1 + 1) / impact.levels

/** Prefix of a term of a whole document. */
const mark = '.'
/** Separator between the term and its level. */
const separator = '_'

/**
 * The terms by which a document is found as a whole, those of most impact first.
 *
 * @param counts The frequency of each word in the document; changed in place.
 * @param terms The words of the title and the path of the document.
 */
function documentTerms(counts: Map<string, number>, length: number, terms: ReadonlySet<string>): readonly string[] {
  for (const term of terms) addTo(counts, term, impact.about)
  const byLevel: string[][] = Array.from({ length: impact.levels }, () => [])
  for (const [term, count] of counts) {
    const level = Math.max(1, Math.round(impactOf(count, length / impact.averageLength) / perLevel))
    byLevel[level - 1]?.push(`${documentTermPrefix(term)}${level}`)
  }
  return byLevel.reverse().flat()
}

/** Prefix of the index terms of a word in whole documents. */
export function documentTermPrefix(term: string): string {
  return `${mark}${term}${separator}`
}

/** The index terms of a word in whole documents, one for each level of impact, with its weight without the rarity. */
export function documentTermLevels(term: string): readonly { readonly term: string; readonly share: number }[] {
  return Array.from({ length: impact.levels }, (_, index) => ({
    term: `${documentTermPrefix(term)}${index + 1}`,
    share: perLevel * (index + 1),
  }))
}
