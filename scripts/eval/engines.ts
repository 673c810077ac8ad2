import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseSync } from '@photostructure/sqlite'
import MiniSearch from 'minisearch'
import { type EmbedderOptions, openSearchIndex } from '../../src/search/index.ts'
import { openStore } from '../../src/store/index.ts'
import { porter } from './porter.ts'

export interface Document {
  /** The id of the document: a path, or any other name. */
  readonly id: string
  readonly text: string
}

/** A search engine under evaluation. Documents can be replaced and removed between two questions. */
export interface Engine {
  readonly name: string
  put(documents: readonly Document[]): Promise<void>
  remove(ids: readonly string[]): Promise<void>
  /** Resolves to the ids of the best documents, best first, without duplicates. */
  find(question: string, limit: number): Promise<readonly string[]>
  close(): Promise<void>
}

/**
 * hikidashi's own search, in a store of its own. With an embedder it throws when the embedder fails, since the figures would be those of the
 * search without vectors.
 */
export async function hikidashi(embedder?: EmbedderOptions): Promise<Engine> {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-eval-'))
  const store = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
  const index = await openSearchIndex({ store, name: 'eval', ...(embedder === undefined ? {} : { embedder }) })
  const mount = 'eval://set'
  const uriOf = (id: string) => `${mount}/${id.split('/').map(encodeURIComponent).join('/')}`
  const idOf = (uri: string) => decodeURIComponent(uri.slice(mount.length + 1))
  const embedded = async (): Promise<void> => {
    for (;;) {
      const { waiting = 0, failing } = (await index.embedding()) ?? {}
      if (failing !== undefined) throw new Error(`The embedder fails: ${failing}`)
      if (waiting === 0) return
      await sleep(50)
    }
  }
  const degraded = (why: string) => {
    throw new Error(why)
  }
  return {
    name: embedder === undefined ? 'hikidashi' : `hikidashi, vectors ${embedder.weight} (${embedder.model})`,
    put: (documents) =>
      index.put(documents.map(({ id, text }) => ({ uri: uriOf(id), mount, version: `${text.length}`, text }))),
    remove: (ids) => index.remove(ids.map(uriOf)),
    find: async (question, limit) => {
      await embedded()
      const found = new Set<string>()
      for await (const { uri } of index.search({ text: question, limit, degraded })) {
        found.add(idOf(uri))
        if (found.size === limit) break
      }
      return [...found]
    },
    close: async () => {
      await index.close()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The terms of a text: words in lower case, identifiers whole and in parts, and character bigrams of scripts without spaces. */
export function wordsOf(text: string): readonly string[] {
  const words: string[] = []
  for (const [word] of text.normalize('NFKC').matchAll(/[\p{L}\p{N}_]+/gu)) {
    if (/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u.test(word)) {
      const points = [...word]
      if (points.length === 1) words.push(word)
      for (let at = 1; at < points.length; at++) words.push(`${points[at - 1]}${points[at]}`)
      continue
    }
    const parts = word.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|\p{N}+/gu) ?? [word]
    words.push(word.toLowerCase())
    if (parts.length > 1) words.push(...parts.map((part) => part.toLowerCase()))
  }
  return words
}

/** An inverted index of texts, with Okapi BM25. */
function createPostings(cut: (text: string) => readonly string[]) {
  const postings = new Map<string, Map<string, number>>()
  const lengths = new Map<string, number>()
  const held = new Map<string, readonly string[]>()
  let total = 0
  const remove = (id: string): void => {
    for (const word of held.get(id) ?? []) postings.get(word)?.delete(id)
    held.delete(id)
    total -= lengths.get(id) ?? 0
    lengths.delete(id)
  }
  return {
    remove,
    put: (id: string, text: string): void => {
      remove(id)
      const words = cut(text)
      for (const word of words) {
        const those = postings.get(word) ?? new Map<string, number>()
        postings.set(word, those.set(id, (those.get(id) ?? 0) + 1))
      }
      held.set(id, [...new Set(words)])
      lengths.set(id, words.length)
      total += words.length
    },
    scores: (question: string): ReadonlyMap<string, number> => {
      const [k1, b] = [1.2, 0.75]
      const scores = new Map<string, number>()
      for (const word of new Set(cut(question))) {
        const those = postings.get(word) ?? new Map<string, number>()
        const rarity = Math.log(1 + (lengths.size - those.size + 0.5) / (those.size + 0.5))
        for (const [id, times] of those) {
          const norm = 1 - b + (b * (lengths.get(id) ?? 0) * lengths.size) / total
          scores.set(id, (scores.get(id) ?? 0) + (rarity * times * (k1 + 1)) / (times + k1 * norm))
        }
      }
      return scores
    },
  }
}

/** English words that say nothing about a topic: the list of Lucene and the usual words of questions. */
const stopWords: ReadonlySet<string> = new Set(
  (
    'a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with ' +
    'how what which who whom whose when where why can could do does did has have had i me my we our you your from about should would'
  ).split(' '),
)
export const isContent = (word: string): boolean => !stopWords.has(word.toLowerCase())

/** The terms of a text, with English words reduced to their stems. */
export const stemsOf = (text: string): readonly string[] => wordsOf(text).map(porter)

/** Okapi BM25 over whole documents. The terms of the path contribute the share `pathShare` of the score. */
export function plainBm25(name: string, pathShare = 0, cut = wordsOf): Engine {
  const contents = createPostings(cut)
  const paths = createPostings(cut)
  const scaled = (scores: ReadonlyMap<string, number>) => {
    const best = [...scores.values()].reduce((most, score) => Math.max(most, score), 0) || 1
    return (id: string) => (scores.get(id) ?? 0) / best
  }
  return {
    name,
    put: async (documents) => {
      for (const { id, text } of documents) {
        contents.put(id, text)
        if (pathShare > 0) paths.put(id, id)
      }
    },
    remove: async (ids) => {
      for (const id of ids) {
        contents.remove(id)
        paths.remove(id)
      }
    },
    find: async (question, limit) => {
      const found = [contents.scores(question), paths.scores(question)] as const
      const [content, path] = [scaled(found[0]), scaled(found[1])]
      const scoreOf = (id: string) => (1 - pathShare) * content(id) + pathShare * path(id)
      return [...new Set([...found[0].keys(), ...found[1].keys()])]
        .map((id) => ({ id, score: scoreOf(id) }))
        .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
        .slice(0, limit)
        .map(({ id }) => id)
    },
    close: async () => {},
  }
}

/**
 * SQLite's FTS5 with its own BM25.
 *
 * @param grams Whether questions are cut into trigrams, as its trigram tokenizer cuts texts.
 * @param isAsked Which words of a question are looked up.
 */
export function fts5(name: string, tokenizer: string, grams = false, isAsked = (_: string) => true): Engine {
  const database = new DatabaseSync(':memory:')
  database.exec(`create virtual table docs using fts5 (id unindexed, text, tokenize = '${tokenizer}')`)
  const insert = database.prepare('insert into docs (id, text) values (?, ?)')
  const drop = database.prepare('delete from docs where id = ?')
  const select = database.prepare('select id from docs where docs match ? order by rank limit ?')
  const held = new Set<string>()
  return {
    name,
    put: async (documents) => {
      database.exec('begin')
      for (const { id, text } of documents) {
        // Delete only known ids, because FTS5 has no index of ids and would scan all documents for each new one.
        if (held.has(id)) drop.run(id)
        held.add(id)
        insert.run(id, text)
      }
      database.exec('commit')
    },
    remove: async (ids) => {
      for (const id of ids) if (held.delete(id)) drop.run(id)
    },
    find: async (question, limit) => {
      const points = [...question]
      const words = grams
        ? points.slice(2).map((_, at) => points.slice(at, at + 3).join(''))
        : [...question.matchAll(/[\p{L}\p{N}]+/gu)].map(([word]) => word)
      const match = [...new Set(words.filter(isAsked))].map((word) => `"${word.replaceAll('"', '""')}"`).join(' OR ')
      return match === '' ? [] : select.all(match, limit).map((row) => String((row as { id: string }).id))
    },
    close: async () => database.close(),
  }
}

/** MiniSearch with its defaults: any word may match, none is required. */
export function miniSearch(): Engine {
  const index = new MiniSearch<Document>({ fields: ['text'], idField: 'id', tokenize: (text) => [...wordsOf(text)] })
  return {
    name: 'MiniSearch',
    put: async (documents) => {
      for (const document of documents) {
        if (index.has(document.id)) index.discard(document.id)
        index.add(document)
      }
    },
    remove: async (ids) => {
      for (const id of ids) if (index.has(id)) index.discard(id)
    },
    find: async (question, limit) =>
      index
        .search(question)
        .slice(0, limit)
        .map(({ id }) => String(id)),
    close: async () => {},
  }
}
