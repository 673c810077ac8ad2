import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Document } from './engines.ts'
import type { Repository } from './git.ts'

export interface Question {
  readonly id: string
  readonly text: string
  readonly relevant: ReadonlySet<string>
  /** Documents to put and to remove before the question, for a repository as it was before a commit. */
  readonly before?: { readonly put: readonly Document[]; readonly remove: readonly string[] }
}

/** Questions, and the documents that are searched for their answers. */
export interface EvalSet {
  readonly name: string
  readonly about: string
  readonly documents: readonly Document[]
  readonly questions: readonly Question[]
}

/** Reads the set of a folder with `docs.jsonl` (`id`, `text`) and `queries.jsonl` (`id`, `text`, `relevant`: an id or several). */
export function setOfFolder(name: string, about: string, folder: string): EvalSet | undefined {
  if (!existsSync(join(folder, 'queries.jsonl'))) return undefined
  const linesOf = (file: string) =>
    readFileSync(join(folder, file), 'utf8')
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => JSON.parse(line) as { id: string; text: string; relevant?: string | readonly string[] })
  const questions = linesOf('queries.jsonl').map(({ id, text, relevant = [] }) => ({
    ...{ id, text },
    relevant: new Set([relevant].flat()),
  }))
  return { name, about, documents: linesOf('docs.jsonl'), questions }
}

/** A set in which the titles of sections of the documentation are the questions, and the sections without titles the documents. */
export async function proseOf(repository: Repository): Promise<EvalSet> {
  const sections: { readonly title: string; readonly id: string; readonly text: string }[] = []
  for (const [path, text] of await headOf(repository, /\.(?:md|mdx|rst|txt)$/))
    for (const [place, { title, text: body }] of sectionsOf(text).entries())
      if (body.length > 200) sections.push({ title, id: `${path}#${place}`, text: body })
  const times = new Map<string, number>()
  for (const { title } of sections) times.set(title, (times.get(title) ?? 0) + 1)
  const questions = sections
    // Titles that several sections share, or with fewer than three words, are not questions.
    .filter(({ title }) => times.get(title) === 1 && title.split(/\s+/).length >= 3)
    .map(({ title, id }) => ({ id, text: title, relevant: new Set([id]) }))
  return {
    name: `prose, ${repository.name}`,
    about: 'title of a section → the section of the documentation, without its title',
    documents: sections
      .map(({ id, text }, at) => ({ id: `${at}`, text, was: id }))
      .map(({ text, was }) => ({ id: was, text })),
    questions: spread(questions, 300),
  }
}

function sectionsOf(text: string): readonly { readonly title: string; readonly text: string }[] {
  const lines = text.split('\n')
  const sections: { title: string; lines: string[] }[] = []
  let isFenced = false
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    if (/^\s*(?:```|~~~)/.test(line)) isFenced = !isFenced
    const markdown = isFenced ? undefined : /^#{1,4}\s+(.*?)\s*#*$/.exec(line)?.[1]
    const under = lines[at + 1] ?? ''
    const isUnderlined =
      /^([=\-~^"*+])\1{3,}\s*$/.test(under) && line.trim() !== '' && under.trim().length >= line.trim().length
    const title = markdown ?? (isUnderlined ? line.trim() : undefined)
    if (title === undefined) sections.at(-1)?.lines.push(line)
    else {
      sections.push({ title: title.replaceAll(/[`*:]/g, ' ').trim(), lines: [] })
      if (markdown === undefined) at++
    }
  }
  return sections.map((section) => ({ title: section.title, text: section.lines.join('\n') }))
}

/** A set in which the first sentences of comments are the questions, and the functions without comments the documents. */
export async function codeOf(repository: Repository): Promise<EvalSet> {
  const documents: Document[] = []
  const questions: Question[] = []
  for (const [path, text] of await headOf(repository, /\.(?:ts|tsx|js|mjs|py|go|rs)$/)) {
    const those = path.endsWith('.py')
      ? pythonFunctions(text)
      : /\.(?:go|rs)$/.test(path)
        ? lineCommented(text)
        : scriptFunctions(text)
    for (const [place, { body, comment }] of those.entries()) {
      const id = `${path}#${place}`
      documents.push({ id, text: body })
      const sentence =
        comment
          ?.split(/(?<=[.!?])\s|\n\s*\n/)[0]
          ?.replaceAll(/\s+/g, ' ')
          .trim() ?? ''
      if (sentence.split(' ').length >= 4) questions.push({ id, text: sentence, relevant: new Set([id]) })
    }
  }
  return {
    name: `code, ${repository.name}`,
    about: 'first sentence of a comment → the function, without the comment',
    documents,
    questions: spread(questions, 300),
  }
}

interface Commented {
  /** The code of the function, without the comment. */
  readonly body: string
  readonly comment?: string
}

/** The functions of a Python file that have at least four lines, including nested functions. */
export function pythonFunctions(text: string): readonly (Commented & { readonly whole: string })[] {
  const lines = text.split('\n')
  const found: (Commented & { readonly whole: string })[] = []
  for (const [at, line] of lines.entries()) {
    const indent = /^(\s*)(?:async )?def \w+/.exec(line)?.[1]?.length
    if (indent === undefined) continue
    let end = at + 1
    while (
      end < lines.length &&
      (lines[end]?.trim() === '' ||
        (/^(\s*)/.exec(lines[end] ?? '')?.[1]?.length !== undefined &&
          (/^(\s*)/.exec(lines[end] ?? '')?.[1]?.length ?? 0) > indent))
    )
      end++
    const whole = lines.slice(at, end).join('\n').trimEnd()
    if (whole.split('\n').length < 4) continue
    const doc = /"""([\s\S]*?)"""/.exec(whole)
    const isFirst = doc !== null && /:\s*(?:->[^:]*:)?\s*$/.test(whole.slice(0, doc.index))
    found.push(isFirst ? { whole, body: whole.replace(doc[0], ''), comment: doc[1] ?? '' } : { whole, body: whole })
  }
  return found
}

function scriptFunctions(text: string): readonly Commented[] {
  const found: Commented[] = []
  const start =
    /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?^([ \t]*)(?:export )?(?:default )?(?:async )?(?:function\b|(?:const|let) \w+ = (?:async )?(?:\([^\n]*=>|function)|(?:public |private |static |async )*\w+\([^\n]*\)[^\n;]*\{)/gm
  for (const match of text.matchAll(start)) {
    const [all, comment, indent = ''] = match
    const from = match.index + (comment === undefined ? 0 : all.indexOf('*/') + 2)
    const close = text.indexOf(`\n${indent}}`, match.index + all.length)
    const body = text.slice(from, close < 0 ? Math.min(text.length, from + 4000) : close + indent.length + 2).trim()
    if (body.split('\n').length < 4 || /^\s*(?:if|for|while|switch|catch)\b/.test(body)) continue
    const words = comment
      ?.replaceAll(/^[ \t]*\*? ?/gm, '')
      .split(/\n@|\s@\w/)[0]
      ?.trim()
    found.push(words === undefined || words === '' ? { body } : { body, comment: words })
  }
  return found
}

/** The functions of a Go or Rust file that have at least four lines, with the lines of comment above them. */
function lineCommented(text: string): readonly Commented[] {
  const found: Commented[] = []
  const start =
    /((?:^[ \t]*\/\/[^\n]*\n)*)(?:^[ \t]*#\[[^\n]*\n)*^([ \t]*)(?:func\b|(?:pub(?:\([a-z]+\))? )?(?:(?:const|async|unsafe) )*fn\b)/gm
  for (const match of text.matchAll(start)) {
    const [all, above = '', indent = ''] = match
    const from = match.index + above.length
    const close = text.indexOf(`\n${indent}}`, match.index + all.length)
    if (close < 0) continue
    const body = text.slice(from, close + indent.length + 2).trim()
    if (body.split('\n').length < 4) continue
    const comment = above.replaceAll(/^[ \t]*\/\/+[!/]? ?/gm, '').trim()
    found.push(comment === '' ? { body } : { body, comment })
  }
  return found
}

/**
 * A set in which commits ask for the files that they modify, as these were before the commit. The question is the subject (`title`), or
 * the first 1,000 characters of a long message without its subject (`text`), which resembles the text of an issue.
 */
export async function changesOf(repository: Repository, kind: 'title' | 'text', count: number): Promise<EvalSet> {
  const changes = await repository.changes(10)
  const textOf = ({ subject, body }: { readonly subject: string; readonly body: string }) =>
    kind === 'title' ? subject.replace(/\s*\(#\d+\)$/, '') : withoutTrailers(body).slice(0, 1000)
  const isUseful = (text: string) => (kind === 'title' ? text.split(/\s+/).length >= 3 : text.length >= 300)
  const chosen = changes.filter((change) => isUseful(textOf(change))).slice(0, count)
  const questions: Question[] = []
  let there: ReadonlyMap<string, string> = new Map()
  for (const change of chosen) {
    const tree = await repository.tree(`${change.commit}^`)
    const put = [...tree].filter(([path, id]) => there.get(path) !== id)
    const texts = await repository.texts(put.map(([, id]) => id))
    const remove = [...there.keys()].filter((path) => !tree.has(path))
    const documents = put.flatMap(([path, id]) => {
      const text = texts.get(id)
      return text === undefined ? [] : [{ id: path, text }]
    })
    there = tree
    questions.push({
      ...{ id: change.commit, text: textOf(change), relevant: change.modified },
      before: { put: documents, remove },
    })
  }
  const asks = kind === 'title' ? 'subject of a commit' : 'long message of a commit'
  return {
    name: `${kind} → files, ${repository.name}`,
    about: `${asks} → the files that it modifies`,
    documents: [],
    questions,
  }
}

/** Removes trailers such as `Signed-off-by`, which say nothing about the change. */
function withoutTrailers(body: string): string {
  return body
    .split('\n')
    .filter((line) => !/^[A-Z][\w-]+(?:-by|-on)?: .*(?:@|https?:)/.test(line))
    .join('\n')
    .trim()
}

async function headOf(repository: Repository, pattern: RegExp): Promise<readonly (readonly [string, string])[]> {
  const tree = [...(await repository.tree('HEAD'))].filter(([path]) => pattern.test(path))
  const texts = await repository.texts(tree.map(([, id]) => id))
  return tree.flatMap(([path, id]) => {
    const text = texts.get(id)
    return text === undefined ? [] : [[path, text] as const]
  })
}

/** Returns up to `count` items of a list, evenly spread. */
function spread<T>(list: readonly T[], count: number): readonly T[] {
  if (list.length <= count) return list
  return Array.from({ length: count }, (_, at) => list[Math.floor((at * list.length) / count)]).filter(
    (one): one is T => one !== undefined,
  )
}
