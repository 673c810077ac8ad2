import { encodePath } from '../core/uri.ts'
import type { Resource } from '../core/view.ts'
import { bm25, type TermCounts } from '../text/relevance.ts'
import { estimateRarity, isReadable, type LexicalResult, matchWords } from './lexical.ts'
import type { ReadingCache } from './memory.ts'
import { type ContextReader, decodeUriPath, folderOf } from './reader.ts'
import {
  compareUris,
  type RankedList,
  type ScoredDocument,
  type SearchOutcome,
  scaleScores,
  sumsOf,
} from './searched.ts'
import type { ContextLimits } from './types.ts'
import { bestSectionScore, type Section, sectionsOf } from './windows.ts'

/**
 * Weights of the ranked lists. `name`: names. `label`: folders and names that a label of the query names. `words`: whole texts. `section`:
 * the best section of each leading text. For resources that a search covers, `search`, `wordsBesideSearch` and `sectionBesideSearch`
 * replace `words`, `section` and `label`. Figures: decision 21.
 */
const weights = {
  search: 0.25,
  name: 0.3,
  label: 0.2,
  words: 0.3,
  section: 0.3,
  wordsBesideSearch: 0.175,
  sectionBesideSearch: 0.175,
}
/** Number of resources whose sections are compared, and number of hits of a search whose texts are compared. */
const sectioned = 64
/**
 * `referred`: share of its score that a candidate passes on to the resources to which it refers. `folder`: the share for those in its
 * folder. `seeds`: number of candidates that pass on their scores.
 */
const nearness = { referred: 0.1, folder: 0.05, seeds: 10 }
/**
 * For resources outside of every search, while a search covers others. `weight`: factor of their scores. `minTerms`: minimum number of
 * different terms of the query that they must have.
 */
const outside = { weight: 0.5, minTerms: 2 }

interface ListInputs {
  readonly terms: ReadonlySet<string>
  /** Tells how well a path fits the labels of the query. `undefined`: the query has none. */
  readonly labelScore: ((path: string) => number) | undefined
  readonly searched: SearchOutcome
  /** Whether a search covers at least one of the resources; `isCovered`: whether one covers this resource. */
  readonly isSearched: boolean
  isCovered(resource: Resource): boolean
  /** Whether a resource is read to search words in it. */
  isRead(resource: Resource): boolean
  /** Whether a resource is a copy of another one that a search has found, or that is required. */
  isDouble(uri: string): boolean
  readonly reader: ContextReader
  readonly limits: ContextLimits
  readonly memory: ReadingCache | undefined
}

/** Searches resources in all ways except by their neighbours. */
export async function findCandidates(
  resourcesByUri: ReadonlyMap<string, Resource>,
  { terms, labelScore, searched, isSearched, isCovered, isRead, isDouble, reader, limits, memory }: ListInputs,
): Promise<{ readonly lists: readonly RankedList[]; readonly notes: readonly string[] }> {
  const lists = searched.lists.map((entries): RankedList => {
    return { name: 'search', entries: entries.filter(({ uri }) => resourcesByUri.has(uri)), weight: weights.search }
  })
  if (terms.size === 0) return { lists: lists, notes: [] }
  const minTermsOf = (resource: Resource) =>
    isSearched && !isCovered(resource) ? Math.min(outside.minTerms, terms.size) : 1
  const resources = [...resourcesByUri.values()]
  const words = await matchWords(resources, [...terms], isRead, reader, limits, memory, minTermsOf)
  const lessOutside = (entries: readonly ScoredDocument[]): readonly ScoredDocument[] => {
    const isOutside = (uri: string) => {
      const resource = resourcesByUri.get(uri)
      return isSearched && resource !== undefined && !isCovered(resource)
    }
    const documents = entries.filter(({ uri }) => !isDouble(uri))
    return documents
      .map(({ uri, score }) => ({ uri, score: isOutside(uri) ? outside.weight * score : score }))
      .sort((a, b) => b.score - a.score || compareUris(a.uri, b.uri))
  }
  const names: RankedList = { name: 'name', entries: lessOutside(words.names), weight: weights.name }
  const contents: RankedList = { name: 'words', entries: lessOutside(words.contents), weight: weights.words }
  const byLabels: RankedList = {
    name: 'label',
    entries:
      labelScore === undefined || isSearched
        ? []
        : lessOutside(scaleScores(resources.map(({ uri }) => [uri, labelScore(decodeUriPath(uri))] as const))),
    weight: weights.label,
  }
  const sections = await bySection(resourcesByUri, names, contents, words, terms, reader)
  const bySections: RankedList = { name: 'section', entries: lessOutside(sections), weight: weights.section }
  const again = await besideSearch(
    resourcesByUri,
    [...lists, names, byLabels],
    isCovered,
    terms,
    reader,
    limits,
    memory,
  )
  return { lists: [...lists, names, byLabels, contents, bySections, ...again], notes: words.notes }
}

/** For resources that a search covers: the scores of the leading texts, and of the best section of each. */
async function besideSearch(
  resources: ReadonlyMap<string, Resource>,
  lists: readonly RankedList[],
  isCovered: (resource: Resource) => boolean,
  terms: ReadonlySet<string>,
  reader: ContextReader,
  limits: ContextLimits,
  memory: ReadingCache | undefined,
): Promise<readonly RankedList[]> {
  const isIn = (uri: string) => {
    const resource = resources.get(uri)
    return resource !== undefined && isCovered(resource)
  }
  const leaders = bestOf(sumsOf(lists))
    .map(([uri]) => uri)
    .filter(isIn)
    .slice(0, Math.min(sectioned, limits.searched))
  const texts = await sectionsOfAll(resources, leaders, terms, reader)
  const counts = texts.map(([, sections]) => inAll(sections, terms.size))
  const leading = new Set(leaders)
  const others = [...resources.values()].filter(
    (resource) => isCovered(resource) && !leading.has(resource.uri) && isReadable(resource, limits),
  )
  const rarity = await estimateRarity(counts, texts.length === 0 ? [] : others, [...terms], reader, memory)
  const scores = bm25(counts, rarity)
  const words = scaleScores(texts.map(([uri], index) => [uri, scores[index] ?? 0] as const))
  const sections = scaleScores(texts.map(([uri, of]) => [uri, bestSectionScore(of, rarity)] as const))
  return [
    { name: 'words', entries: words, weight: weights.wordsBesideSearch },
    { name: 'section', entries: sections, weight: weights.sectionBesideSearch },
  ]
}

/** The frequencies of the terms in all sections of a text. */
function inAll(sections: readonly Section[], terms: number): TermCounts {
  const counts = Array.from({ length: terms }, (_, term) =>
    sections.reduce((sum, { found }) => sum + (found.counts[term] ?? 0), 0),
  )
  return { counts, length: sections.reduce((sum, { found }) => sum + found.length, 0) }
}

/** For the best resources by words and names: the score of the best section of each. */
async function bySection(
  resources: ReadonlyMap<string, Resource>,
  names: RankedList,
  contents: RankedList,
  { rarity }: LexicalResult,
  terms: ReadonlySet<string>,
  reader: ContextReader,
): Promise<readonly ScoredDocument[]> {
  const hasWords = new Set(contents.entries.map(({ uri }) => uri))
  const leaders = bestOf(sumsOf([names, { ...contents, weight: weights.words + weights.section }]))
    .map(([uri]) => uri)
    .filter((uri) => hasWords.has(uri))
    .slice(0, sectioned)
  const texts = await sectionsOfAll(resources, leaders, terms, reader)
  return scaleScores(texts.map(([uri, sections]) => [uri, bestSectionScore(sections, rarity)] as const))
}

/** Reads resources, and splits texts into their sections. */
async function sectionsOfAll(
  resources: ReadonlyMap<string, Resource>,
  uris: readonly string[],
  terms: ReadonlySet<string>,
  reader: ContextReader,
): Promise<readonly (readonly [uri: string, sections: readonly Section[]])[]> {
  const readings = await reader.read(uris)
  return uris.flatMap((uri, index) => {
    const reading = readings[index]
    if (reading === undefined || !('text' in reading)) return []
    const of = {
      text: reading.text,
      path: decodeUriPath(uri),
      mimeType: resources.get(uri)?.mimeType ?? reading.mimeType,
    }
    return [[uri, sectionsOf(of, terms)] as const]
  })
}

function bestOf(sums: ReadonlyMap<string, number>): readonly (readonly [uri: string, sum: number])[] {
  return [...sums].sort(([a, one], [b, other]) => other - one || compareUris(a, b))
}

export async function neighboursOf(
  pinned: readonly string[],
  sums: ReadonlyMap<string, number>,
  resources: ReadonlyMap<string, Resource>,
  reader: ContextReader,
): Promise<readonly RankedList[]> {
  const best = bestOf(sums)
  const most = best[0]?.[1] ?? 1
  const seeds = new Map([...pinned.map((uri) => [uri, most] as const), ...best])
  const leading = [...seeds].slice(0, nearness.seeds)
  if (leading.length === 0) return []
  const beside = foldersOf([...resources.keys()])
  const readings = await reader.read(leading.map(([uri]) => uri))
  const referred = new Map<string, number>()
  const together = new Map<string, number>()
  const raise = (scores: Map<string, number>, uri: string, score: number) =>
    scores.set(uri, Math.max(score, scores.get(uri) ?? 0))
  for (const [index, [uri, score]] of leading.entries()) {
    const reading = readings[index]
    if (reading !== undefined && 'text' in reading)
      for (const each of referredTo(uri, reading.text, (one) => resources.has(one))) raise(referred, each, score)
    for (const each of beside(uri)) raise(together, each, score)
  }
  const listOf = (name: string, scores: ReadonlyMap<string, number>, weight: number): RankedList => ({
    name,
    entries: [...scores].map(([uri, score]) => ({ uri, score })).sort((a, b) => b.score - a.score),
    weight,
  })
  return [listOf('referred to', referred, nearness.referred), listOf('same folder', together, nearness.folder)]
}

/** Patterns of references to files in code and prose: imports, includes, links. */
const references = [
  /\b(?:from|import|require\s*\(|import\s*\(|include)\s*["'<]([^"'<>\n]{1,300})["'>]/g,
  /\]\(<?([^)\s<>]{1,300})>?\)/g,
  /\b(?:href|src)\s*=\s*["']([^"'\n]{1,300})["']/g,
]
const most = { references: 200, text: 400_000, folder: 12 }
const endings = ['', '.ts', '.tsx', '.js', '.jsx', '.mjs', '.py', '.md', '/index.ts', '/index.js', '/README.md']

/** The known URIs that the beginning of a text refers to, resolved against its own. */
function referredTo(uri: string, text: string, isKnown: (uri: string) => boolean): readonly string[] {
  const uris = new Set<string>()
  const part = text.slice(0, most.text)
  let lookCount = 0
  for (const pattern of references)
    for (const [, reference = ''] of part.matchAll(pattern)) {
      if (++lookCount > most.references) return [...uris]
      const target = candidatesFor(uri, reference).find(isKnown)
      if (target !== undefined && target !== uri) uris.add(target)
    }
  return [...uris]
}

function candidatesFor(uri: string, reference: string): readonly string[] {
  const [path = ''] = reference.split(/[?#]/)
  if (path === '') return []
  if (/^[a-z][a-z0-9+.-]*:/i.test(path)) return [path]
  const whole = resolved(folderOf(uri), path)
  if (whole === undefined) return []
  // An import of a `.js` file may refer to a TypeScript file.
  const bare = whole.replace(/\.[cm]?jsx?$/, '')
  return [
    ...endings.map((ending) => whole + ending),
    ...(bare === whole ? [] : ['.ts', '.tsx'].map((end) => bare + end)),
  ]
}

/** Resolves a relative path below a folder. `undefined`: the path is absolute, or leads out of the root. */
function resolved(folder: string, path: string): string | undefined {
  const [, root, rest] = /^([a-z][a-z0-9+.-]*:\/\/[^/]*\/)(.*)$/i.exec(folder) ?? []
  if (root === undefined || rest === undefined || path.startsWith('/') || !path.isWellFormed()) return undefined
  const segments = rest.split('/').filter((segment) => segment !== '')
  for (const segment of path.split('/')) {
    if (segment === '..') {
      if (segments.pop() === undefined) return undefined
    } else if (segment !== '.' && segment !== '')
      segments.push(/%[0-9a-f]{2}/i.test(segment) ? segment : encodePath(segment))
  }
  return root + segments.join('/')
}

/** Returns a function that takes a resource, and returns the others in its folder; none for a very large folder. */
function foldersOf(uris: readonly string[]): (uri: string) => readonly string[] {
  const folders = new Map<string, string[]>()
  for (const uri of uris) {
    const folder = folderOf(uri)
    const members = folders.get(folder)
    if (members === undefined) folders.set(folder, [uri])
    else members.push(uri)
  }
  return (uri) => {
    const all = folders.get(folderOf(uri)) ?? []
    return all.length > most.folder ? [] : all.filter((other) => other !== uri)
  }
}
