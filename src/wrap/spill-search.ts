import { invalid } from '../core/errors.ts'
import type { Found, FoundHit } from '../core/found.ts'
import { fold, wordsOf } from '../core/kit/matching.ts'
import type { Params } from '../core/provider.ts'

interface SearchedFile {
  readonly uri: string
  readonly title?: string
  readonly mimeType?: string
  readonly text: string
}

/** Number of lines of a passage. */
const passageLines = 20
/** Maximum length of a query, in characters, and maximum number of its words. */
const [maxQuery, maxWords] = [1000, 16]
const limits = { most: 50, otherwise: 10 }
const maxSnippet = 300

/**
 * Finds passages in texts by the words of a query, in any script: words are matched as parts of the text, ignoring case and width.
 * The passages with the most of the words come first.
 *
 * @throws ResourceError `invalid` for a query without words.
 */
export async function searchFiles(
  files: readonly SearchedFile[],
  mount: string,
  params: Params,
  signal: AbortSignal,
): Promise<Found> {
  const query = params.get('q') ?? ''
  const words = wordsIn(query)
  if (words.length === 0 || query.length > maxQuery)
    throw invalid(`The query has no words, or over ${maxQuery} characters.`, 'query')
  const limit = Math.min(limits.most, Math.max(1, Number.parseInt(params.get('limit') ?? '', 10) || limits.otherwise))
  const hits: FoundHit[] = []
  for (const file of files) {
    // Yields to other requests between two files.
    await new Promise((resolve) => setImmediate(resolve))
    signal.throwIfAborted()
    const lines = file.text.split('\n')
    for (let start = 0; start < lines.length; start += passageLines) {
      const hit = hitIn(file, lines.slice(start, start + passageLines), start, words, mount)
      if (hit !== undefined) hits.push(hit)
    }
  }
  hits.sort((a, b) => b.score - a.score)
  const best = hits[0]?.score ?? 1
  const shown = hits.slice(0, limit).map((hit) => ({ ...hit, score: hit.score / best }))
  return { query, hits: shown, total: hits.length, notes: [] }
}

function hitIn(
  { uri, title, mimeType }: SearchedFile,
  lines: readonly string[],
  start: number,
  words: readonly string[],
  mount: string,
): FoundHit | undefined {
  const folded = lines.map(fold)
  const whole = folded.join('\n')
  const found = words.filter((word) => whole.includes(word))
  if (found.length === 0) return undefined
  // The snippet is the line with the most words.
  const counts = folded.map((line) => found.filter((word) => line.includes(word)).length)
  const best = counts.indexOf(Math.max(...counts))
  const line = lines[best] ?? ''
  const at = Math.max(0, (folded[best] ?? '').indexOf(found[0] ?? '') - 80)
  const [first, last] = [start + 1, start + lines.length]
  return {
    uri: `${uri}?lines=${first}-${last}`,
    document: uri,
    mount,
    ...(title === undefined ? {} : { title }),
    ...(mimeType === undefined ? {} : { mimeType }),
    lines: { start: first, end: last },
    score: found.length / words.length,
    snippet: { text: line.slice(at, at + maxSnippet).toWellFormed(), marks: [] },
  }
}

function wordsIn(query: string): readonly string[] {
  return [...new Set(wordsOf(query))].slice(0, maxWords)
}
