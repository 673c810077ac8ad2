import { createHash, type Hash, randomUUID } from 'node:crypto'
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { createSlices, type Slices } from '../../core/kit/breath.ts'
import { defined } from '../../core/kit/object.ts'
import type { Anchors } from './anchors.ts'
import { type Folder, readIn } from './folder.ts'
import type { Launcher } from './launch.ts'
import { createNames, type RefNames } from './names.ts'
import type { Settings } from './options.ts'
import { cutMark, oneLine, shortId, type TextPage, wholeLines } from './page-text.ts'
import { createRefReader } from './ref-files.ts'
import {
  createRefListWriter,
  holdsId,
  type IndexRange,
  indexOfRef,
  oidAt,
  type RefList,
  rangeBelow,
  refAt,
  refsIn,
} from './ref-list.ts'

/** Snapshot of all served refs. */
export interface RefTable {
  readonly refs: RefList
  /** The commit of `HEAD`; undefined when it is not served, or has no commit yet. */
  readonly head?: { readonly oid: string; readonly branch?: string }
  /** The branch of `HEAD`, even if it has no commit yet. */
  readonly branch?: string
  /** Whether a served ref, or `HEAD`, has the object id. */
  isTip(oid: string): Promise<boolean>
  /** Yields the object ids of all served refs; duplicates are possible. */
  tips(): AsyncIterable<string>
  readonly names: RefNames
  /** Hash that changes whenever any part of the table changes. */
  readonly fingerprint: string
}

interface RefsOptions extends Pick<Settings, 'serves' | 'patterns' | 'heard'> {
  /** Called before refs are read: checks that the repository is still valid. Returns its directories, which are held open. */
  readonly prepare: () => Promise<Anchors>
  /** Called after refs are read: makes the objects of the repository available to git. */
  readonly lend: () => Promise<void>
  /** Commits whose parents are missing: the readable history depends on them. */
  readonly shallow: () => ReadonlySet<string>
  /** Maximum age of a table, in milliseconds. */
  readonly maxAgeMs: number
  readonly idLength: number
}

export function createRefs(options: RefsOptions) {
  const { serves } = options
  const readRefs = createRefReader(options.idLength, serves, options.heard)
  let known: { readonly since: number; readonly table: Promise<RefTable> } | undefined
  let last: { readonly table: RefTable; readonly all: RefList; readonly key: string } | undefined

  const load = async (): Promise<RefTable> => {
    const { gitDir, commonDir } = await options.prepare()
    const slices = createSlices(options.heard)
    const head = await readHead(gitDir, options.idLength)
    const branch = head !== undefined && 'branch' in head ? head.branch : undefined
    const patterns = [...options.patterns, ...(branch === undefined ? [] : [branch])]
    const all = await readRefs(commonDir, patterns)
    // Objects are taken over after refs, so that the objects of all refs are available.
    await options.lend()
    const key = JSON.stringify([head ?? null, ...options.shallow()])
    if (last?.all === all && last.key === key) return last.table
    const hash = createHash('sha256').update(key)
    for (const column of [all.names, all.ids]) await hashInParts(hash, column, slices)
    const fingerprint = hash.digest('hex').slice(0, 32)
    if (last?.table.fingerprint === fingerprint) {
      last = { ...last, all, key }
      return last.table
    }
    const refs = await servedOf(all, slices)
    const current = branch === undefined ? -1 : indexOfRef(all, branch)
    const oid = current !== -1 ? oidAt(all, current) : head !== undefined && 'oid' in head ? head.oid : undefined
    const served = serves('HEAD') || (branch !== undefined && serves(branch))
    const headOid = served ? oid : undefined
    const table: RefTable = {
      refs,
      ...(headOid === undefined ? {} : { head: { oid: headOid, ...defined({ branch }) } }),
      ...(branch !== undefined && served ? { branch } : {}),
      isTip: async (id) => id === headOid || holdsId(refs, id, createSlices(options.heard)),
      tips: async function* () {
        if (headOid !== undefined) yield headOid
        for await (const ref of refsIn(refs, createSlices(options.heard))) yield ref.oid
      },
      names: createNames(refs),
      fingerprint,
    }
    last = { table, all, key }
    return table
  }

  return {
    /** Returns a table that is at most `maxAgeMs` old, and not older than `notBefore` (a time of `performance.now()`). */
    table: (notBefore = 0): Promise<RefTable> => {
      const now = performance.now()
      if (known === undefined || known.since < notBefore || now - known.since > options.maxAgeMs) {
        // One load after the other, so that they share unchanged data.
        const before = known?.table.catch(() => {})
        const entry = { since: now, table: before === undefined ? load() : before.then(load) }
        known = entry
        // A failure is not cached.
        entry.table.catch(() => {
          if (known === entry) known = undefined
        })
      }
      return known.table
    },
  }
}

export type Refs = ReturnType<typeof createRefs>

const hashPieceBytes = 1024 * 1024

async function hashInParts(hash: Hash, bytes: Buffer, slices: Slices): Promise<void> {
  for (let at = 0; at < bytes.length; at += hashPieceBytes) {
    hash.update(bytes.subarray(at, at + hashPieceBytes))
    await slices.rest()
  }
}

/** Returns the served refs: the same list if all of them are served. */
async function servedOf(all: RefList, slices: Slices): Promise<RefList> {
  if (!all.served.includes(0)) return all
  const writer = createRefListWriter(all.idBytes, { refs: all.length, bytes: all.names.length })
  for (let i = 0; i < all.length; i++) {
    if (all.served[i] === 1) writer.copy(all, i)
    if (slices.due()) await slices.rest()
  }
  return writer.finish()
}

/** The content of `HEAD`: the branch that it is on, or the commit that it is detached at. */
type Head = { readonly branch: string } | { readonly oid: string }

/** Reads `HEAD` as data. Returns undefined when it is not in git's format: a symbolic link, or a ref that is no branch. */
async function readHead(gitDir: Folder, idLength: number): Promise<Head | undefined> {
  let text: string | undefined
  try {
    text = (await readIn(gitDir, 'HEAD', 4096))?.toString('utf8').trimEnd()
  } catch {
    return undefined
  }
  const branch = /^ref:\s*(refs\/heads\/[^\s\p{Cc}]+)$/u.exec(text ?? '')?.[1]
  if (branch !== undefined && !branch.includes('\ufffd')) return { branch }
  return text !== undefined && text.length === idLength && /^[0-9a-f]+$/.test(text) ? { oid: text } : undefined
}

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
): Promise<TextPage> {
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
async function writeRefs(refsDir: string, refs: RefList, { start, end }: IndexRange): Promise<void> {
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
