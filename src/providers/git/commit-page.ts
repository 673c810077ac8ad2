import { notFound } from '../../core/errors.ts'
import { readDifference } from './difference.ts'
import type { Launcher } from './launch.ts'
import type { ObjectFormat } from './objects.ts'
import { cutMark, manyLines, oneLine, type Page } from './text.ts'

/** The id of the empty tree, which git knows without storing it. */
export const emptyTree: Readonly<Record<ObjectFormat, string>> = {
  sha1: '4b825dc642cb6eb9a060e54bf8d69288fbee4904',
  sha256: '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321',
}

/** Maximum length of a commit message, in bytes. */
const maxMessage = 64 * 1024

/**
 * Reads one commit as text: its id, parents, people and dates; its message, indented; the changes of each file; the patch. A merge is compared
 * with its first parent.
 */
export async function readCommit(
  launcher: Launcher,
  commit: string,
  settings: { readonly format: ObjectFormat; readonly maxBytes: number; readonly shallow: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<Page> {
  const head = await launcher.run({
    args: [
      'log',
      '--max-count=1',
      '--format=%P%n%an <%ae> %aI%n%cn <%ce> %cI%n%B',
      '--encoding=UTF-8',
      '--end-of-options',
      commit,
      '--',
    ],
    limit: maxMessage,
    signal,
  })
  const [parentIds, author, committer, ...message] = head.bytes.toString('utf8').split('\n')
  if (parentIds === undefined || author === undefined || committer === undefined) throw notFound('no such commit')
  const parents = parentIds.split(' ').filter((id) => id !== '')
  const lines = [
    `commit ${commit}`,
    ...(parents.length === 0 ? [] : [`${parents.length === 1 ? 'parent' : 'parents'} ${parents.join(' ')}`]),
    `author ${oneLine(author)}`,
    ...(committer === author ? [] : [`committer ${oneLine(committer)}`]),
    '',
    ...manyLines(message.join('\n').trimEnd())
      .split('\n')
      .map((line) => (line === '' ? '' : `    ${line}`)),
    ...(head.cut ? [cutMark(`the message is longer than ${maxMessage} bytes`)] : []),
    '',
  ]
  const [parent] = parents
  if (parent === undefined && settings.shallow.has(commit))
    return {
      text: `${[...lines, 'Its parents, and so its changes, are not in this shallow clone.'].join('\n')}\n`,
      cut: head.cut,
    }
  const difference = await readDifference(
    launcher,
    {
      from: parent ?? emptyTree[settings.format],
      to: commit,
      ...(parents.length > 1 ? { note: 'compared with the first parent' } : {}),
    },
    settings.maxBytes,
    signal,
  )
  return { text: `${lines.join('\n')}\n${difference.text}`, cut: head.cut || difference.cut }
}
