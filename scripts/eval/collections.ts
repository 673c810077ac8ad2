import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Document } from './engines.ts'
import { type EvalSet, pythonFunctions, type Question, setOfFolder } from './sets.ts'

/**
 * Reads the sets of a folder with a published collection, in one of these forms:
 *
 * - CoSQA: `code_idx_map.txt` and `cosqa-retrieval-*.json` (two sets if there are two such files);
 * - Cranfield, CISI and others in the format of SMART: one file each with `all`, `qry` and `rel` in its name;
 * - any other collection: `docs.jsonl` and `queries.jsonl`, as {@link setOfFolder} reads them.
 */
export function collectionsOf(name: string, folder: string): readonly EvalSet[] {
  if (existsSync(join(folder, 'code_idx_map.txt'))) return cosqaOf(name, folder)
  const one = setOfFolder(name, 'question → document', folder) ?? smartOf(name, folder)
  if (one === undefined) throw new Error(`--set ${name}=${folder}: this folder has no collection of a known form`)
  return [one]
}

/** Web queries, and Python functions that answer them. Each function is named by a number, so that its name is no clue. */
function cosqaOf(name: string, folder: string): readonly EvalSet[] {
  const nameOf = (index: number) => `${index}.py`
  const codes = JSON.parse(readFileSync(join(folder, 'code_idx_map.txt'), 'utf8')) as Record<string, number>
  const documents = Object.entries(codes).map(([text, index]) => ({ id: nameOf(index), text }))
  return readdirSync(folder)
    .sort()
    .flatMap((file): readonly EvalSet[] => {
      const part = /^cosqa-retrieval-([a-z]+).*\.json$/.exec(file)?.[1]
      if (part === undefined) return []
      const asked = JSON.parse(readFileSync(join(folder, file), 'utf8')) as readonly {
        readonly idx: string
        readonly doc: string
        readonly retrieval_idx: number
      }[]
      const questions = asked.map(
        ({ idx, doc, retrieval_idx }): Question => ({
          ...{ id: idx, text: doc },
          relevant: new Set([nameOf(retrieval_idx)]),
        }),
      )
      return [{ name: `${name}, ${part}`, about: 'question of the web → Python function', documents, questions }]
    })
}

/**
 * Abstracts and questions in the format of the SMART system. The text of a document is its title and abstract. A judgement below 0 means
 * that a document is not relevant.
 */
function smartOf(name: string, folder: string): EvalSet | undefined {
  const textOf = (kind: RegExp): string | undefined => {
    const file = readdirSync(folder).find((one) => kind.test(one) && !one.endsWith('.readme'))
    return file === undefined ? undefined : readFileSync(join(folder, file), 'latin1')
  }
  const [all, asked, judged] = [textOf(/\.all/i), textOf(/\.qry/i), textOf(/rel$/i)]
  if (all === undefined || asked === undefined || judged === undefined) return undefined
  const relevant = new Map<string, Set<string>>()
  for (const line of judged.split('\n')) {
    const [query = '', document = '', degree = '1'] = line.trim().split(/\s+/)
    if (document === '' || Number(degree) < 0) continue
    relevant.set(query, (relevant.get(query) ?? new Set()).add(`${document}.txt`))
  }
  const documents = recordsOf(all).map(({ id, T: title = '', W: text = '' }): Document => {
    // The abstracts of Cranfield repeat their titles.
    const isRepeated = text.replaceAll(/\s+/g, ' ').startsWith(title.replaceAll(/\s+/g, ' '))
    return { id: `${id}.txt`, text: isRepeated ? text : `${title}\n\n${text}` }
  })
  const questions = recordsOf(asked).flatMap(({ W: text = '' }, at): readonly Question[] => {
    // The judgements of Cranfield number the questions from 1, regardless of the questions' own numbers, which have gaps.
    const number = `${at + 1}`
    const those = relevant.get(number)
    return those === undefined ? [] : [{ id: number, text: text.replaceAll(/\s+/g, ' '), relevant: those }]
  })
  return { name, about: 'question → abstract', documents, questions }
}

interface SmartRecord {
  readonly id: string
  readonly T?: string
  readonly W?: string
}

function recordsOf(text: string): readonly SmartRecord[] {
  return text
    .split(/^\.I +/m)
    .slice(1)
    .map((record): SmartRecord => {
      const [id = '', ...fields] = record.split(/^\.([A-Z]) *\r?\n/m)
      const named = new Map<string, string>()
      for (let at = 0; at + 1 < fields.length; at += 2) {
        const [key = '', value = ''] = fields.slice(at)
        if (!named.has(key)) named.set(key, value.trim())
      }
      return { id: id.trim(), T: named.get('T') ?? '', W: named.get('W') ?? '' }
    })
}

/**
 * Returns a set with more documents as distractors: those of `others` whose texts the set does not contain. Their names are numbers,
 * as those of the set.
 */
export function amongOthers(set: EvalSet, others: readonly string[]): EvalSet {
  const known = new Set(set.documents.map(({ text }) => text))
  const more = others.filter((text) => !known.has(text))
  return {
    ...set,
    name: `${set.name}, among ${more.length} others`,
    documents: [...set.documents, ...more.map((text, at) => ({ id: `other${at}.py`, text }))],
  }
}

/** Returns up to `most` Python functions of the files below folders, without duplicates and evenly spread, for {@link amongOthers}. */
export function functionsBelow(folders: readonly string[], most: number): readonly string[] {
  const texts = new Set<string>()
  for (const folder of folders)
    for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort())
      if (path.endsWith('.py'))
        for (const { whole } of pythonFunctions(readFileSync(join(folder, path), 'utf8'))) texts.add(whole)
  const all = [...texts]
  const step = Math.max(1, all.length / most)
  return Array.from({ length: Math.min(most, all.length) }, (_, at) => all[Math.floor(at * step)] ?? '')
}
