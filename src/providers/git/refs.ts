import { createHash, type Hash, randomUUID } from 'node:crypto'
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { createSlices, type Slices } from '../../core/kit/breath.ts'
import { defined } from '../../core/kit/object.ts'
import type { Launcher } from './launch.ts'
import { createNames, type RefNames } from './names.ts'
import type { Settings } from './options.ts'
import { cutMark, oneLine, shortId, type TextPage, wholeLines } from './page-text.ts'
import {
  holdsId,
  type IndexRange,
  indexOfRef,
  isServable,
  maxNameBytes,
  parseRefs,
  type RefList,
  rangeBelow,
  refAt,
  refFormat,
  refsIn,
  tooManyRefs,
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
  readonly launcher: Launcher
  /** Called before refs are read: checks that the repository is still valid, and shows git its current state. */
  readonly refresh: () => Promise<Refreshed>
  /** Maximum age of a table, in milliseconds. */
  readonly maxAgeMs: number
  readonly idLength: number
}

/** The state of a repository besides its refs. */
interface Refreshed {
  /** Refs, and directories of refs, that are not served. */
  readonly leftOut: readonly string[]
  /** Commits whose parents are missing: the readable history depends on them. */
  readonly shallow: ReadonlySet<string>
}

/** Maximum size of the list of refs, in bytes. */
const maxListBytes = 256 * 1024 * 1024

/** Number of refs that git lists in a small part of a second. With more of them, the maximum age is longer in proportion, up to ten times. */
const quicklyListed = 50_000

export function createRefs(options: RefsOptions) {
  const { launcher, serves, idLength } = options
  let known: { readonly since: number; readonly table: Promise<RefTable> } | undefined
  let last: RefTable | undefined

  /** Asks git for the refs, the branch of `HEAD` and its commit. */
  const ask = async () => {
    const signal = new AbortController().signal
    const plain = { limit: maxNameBytes, signal, quiet: true, allows: [1, 128] }
    const [list, symbolic, head] = await Promise.all([
      launcher.run({
        args: ['for-each-ref', `--format=${refFormat}`, '--end-of-options', ...options.patterns],
        limit: maxListBytes,
        signal,
        quiet: true,
      }),
      launcher.run({ args: ['symbolic-ref', '--quiet', 'HEAD'], ...plain }),
      launcher.run({ args: ['rev-parse', '--quiet', '--verify', 'HEAD'], ...plain }),
    ])
    if (list.cut) throw tooManyRefs()
    const name = symbolic.code === 0 ? symbolic.bytes.toString('utf8').trimEnd() : undefined
    const oid = head.code === 0 ? head.bytes.toString('latin1').trimEnd() : undefined
    return { bytes: list.bytes, name, ...defined({ oid }) }
  }

  const load = async (): Promise<RefTable> => {
    const { leftOut, shallow } = await options.refresh()
    const slices = createSlices(options.heard)
    const { bytes, name, oid } = await ask()
    const isLeftOut = (ref: string) => leftOut.some((one) => ref === one || ref.startsWith(`${one}/`))
    const isBranch = name?.startsWith('refs/heads/') === true && isServable(name) && !isLeftOut(name)
    const branch = isBranch ? name : undefined
    const served = serves('HEAD') || (branch !== undefined && serves(branch))
    // A HEAD that names something else than a branch is on no commit.
    const headOid = served && (name === undefined || isBranch) ? oid : undefined
    const hash = createHash('sha256').update(JSON.stringify([name ?? null, oid ?? null, leftOut, ...shallow]))
    await hashInParts(hash, bytes, slices)
    const fingerprint = hash.digest('hex').slice(0, 32)
    if (last?.fingerprint === fingerprint) return last
    const refs = await parseRefs(bytes, idLength, (ref) => serves(ref) && !isLeftOut(ref), slices)
    last = {
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
    return last
  }

  return {
    /** Returns a table that is at most about `maxAgeMs` old, and not older than `notBefore` (a time of `performance.now()`). */
    table: (notBefore = 0): Promise<RefTable> => {
      const now = performance.now()
      // git takes long to list very many refs.
      const maxAgeMs = options.maxAgeMs * Math.min(10, Math.max(1, (last?.refs.length ?? 0) / quicklyListed))
      if (known === undefined || known.since < notBefore || now - known.since > maxAgeMs) {
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

/** Maximum number of branches or tags listed. */
const maxShown = 1000
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
        `--count=${maxShown + 1}`,
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
      if (lines.length === maxShown) {
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

/** Writes refs into a git directory of the provider's own, in which git sees only those that are served. */
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
