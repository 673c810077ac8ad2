import { randomUUID } from 'node:crypto'
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Launcher } from './launch.ts'
import { indexOfRef, type Range, type RefList, rangeBelow, refAt } from './ref-list.ts'
import type { RefTable } from './refs.ts'
import { createSlices } from './slices.ts'
import { cutMark, oneLine, type Page, shortId, wholeLines } from './text.ts'

/** Maximum number of branches or tags listed. */
const maxRefs = 1000
const maxBytes = 8 * 1024 * 1024

/** Reads the branches, or the tags, as text: one line each, newest first, `name id date subject`. */
export async function readRefPage(
  launcher: Launcher,
  refsDir: string,
  kind: 'branches' | 'tags',
  table: RefTable,
  signal: AbortSignal,
): Promise<Page> {
  const folder = kind === 'branches' ? 'refs/heads/' : 'refs/tags/'
  const { refs, names } = table
  const served = rangeBelow(refs, folder)
  const lines: string[] = []
  let cut = false
  if (served.start < served.end) {
    await writeRefs(refsDir, refs, served)
    const output = await launcher.run({
      args: [
        'for-each-ref',
        '--sort=refname',
        '--sort=-creatordate',
        // One more than is shown, to know whether there are more.
        `--count=${maxRefs + 1}`,
        // The date and subject of an annotated tag, or of the commit of a branch or lightweight tag.
        '--format=%(refname)%00%(objectname)%00%(creatordate:iso-strict)%00%(subject)%00%(*objectname)',
        '--end-of-options',
        folder.slice(0, -1),
      ],
      gitDir: refsDir,
      limit: maxBytes,
      signal,
      quiet: true,
    })
    cut = output.cut
    for (const line of wholeLines(output).split('\n')) {
      const [name = '', oid = '', date = '', subject = '', peeled = ''] = line.split('\0')
      // A concurrent request may have written other refs.
      if (indexOfRef(refs, name) === -1) continue
      if (lines.length === maxRefs) {
        cut = true
        break
      }
      const mark = name === table.branch ? '* ' : '  '
      const called = oneLine(names.shortest(name))
      lines.push(`${mark}${called} ${shortId(peeled === '' ? oid : peeled)} ${date} ${oneLine(subject, 200)}`.trimEnd())
    }
  }
  const text = [
    titleOf(kind, table),
    ...lines,
    ...(lines.length === 0 ? [`No ${kind}.`] : []),
    ...(cut ? [cutMark(`there are more ${kind} than the ${lines.length} shown`)] : []),
  ]
  return { text: `${text.join('\n')}\n`, cut, version: table.fingerprint }
}

/** Writes refs into a git directory of the provider's own, so that git can read them. */
async function writeRefs(refsDir: string, refs: RefList, { start, end }: Range): Promise<void> {
  const slices = createSlices()
  // Two concurrent requests write two files; the last one wins.
  const written = join(refsDir, `packed-refs.${randomUUID()}`)
  const file = await open(written, 'wx', 0o600)
  try {
    let lines = ''
    for (let i = start; i < end; i++) {
      const { name, oid } = refAt(refs, i)
      lines += `${oid} ${name}\n`
      if (!slices.due()) continue
      await file.write(lines)
      lines = ''
      await slices.rest()
    }
    await file.write(lines)
  } finally {
    await file.close()
  }
  await rename(written, join(refsDir, 'packed-refs'))
}

function titleOf(kind: 'branches' | 'tags', { head, branch }: RefTable): string {
  if (kind === 'tags') return 'Tags, newest first.'
  if (branch !== undefined && head === undefined)
    return `Branches. HEAD is on ${oneLine(branch)}, which has no commits yet.`
  if (branch !== undefined) return 'Branches, newest first. HEAD is on the one with a *.'
  return `Branches, newest first.${head === undefined ? '' : ` HEAD is detached at ${shortId(head.oid)}.`}`
}
