import { createHash, type Hash } from 'node:crypto'
import type { Anchors } from './anchors.ts'
import { readHead } from './head.ts'
import { createNames, type Names } from './names.ts'
import { createRefFiles } from './ref-files.ts'
import { createRefListWriter, holdsId, indexOfRef, oidAt, type RefList, refsIn } from './ref-list.ts'
import { createSlices, type Slices } from './slices.ts'

/** All refs that are served, as they were at one moment. */
export interface RefTable {
  readonly refs: RefList
  /** What `HEAD` is at; absent where it is not served, or has no commit yet. */
  readonly head?: { readonly oid: string; readonly branch?: string }
  /** The branch that `HEAD` is on, also where it has no commit yet. */
  readonly branch?: string
  /** Whether a ref that is served, or `HEAD`, is at an object. */
  isTip(oid: string): Promise<boolean>
  /** The ids at the ends of everything that is served; one may be there several times. */
  tips(): AsyncIterable<string>
  readonly names: Names
  /** Changes whenever any of it does. */
  readonly fingerprint: string
}

export interface Refs {
  /** A table that is not too old; nor from before a time (of `performance.now()`), where one is given. */
  table(notBefore?: number): Promise<RefTable>
}

export interface RefsOptions {
  readonly serves: (ref: string) => boolean
  readonly patterns: readonly string[]
  /** Called before refs are read: checks that the repository is still one. Answers its directories, which are held open. */
  readonly prepare: () => Promise<Anchors>
  /** Called behind that: lends its objects. */
  readonly lend: () => Promise<void>
  /** Commits whose parents are not there: what can be read of the history depends on them. */
  readonly shallow: () => ReadonlySet<string>
  /** How old a table may become, in milliseconds. */
  readonly maxAgeMs: number
  readonly idLength: number
  /** Is told how many entries were worked on at once. */
  readonly heard?: (entries: number) => void
}

export function createRefs(options: RefsOptions): Refs {
  const { serves } = options
  const files = createRefFiles(options.idLength, serves, options.heard)
  let known: { readonly since: number; readonly table: Promise<RefTable> } | undefined
  let last: { readonly table: RefTable; readonly all: RefList; readonly key: string } | undefined

  const load = async (): Promise<RefTable> => {
    const { gitDir, commonDir } = await options.prepare()
    const slices = createSlices(options.heard)
    const head = await readHead(gitDir, options.idLength)
    const branch = head !== undefined && 'branch' in head ? head.branch : undefined
    const patterns = [...options.patterns, ...(branch === undefined ? [] : [branch])]
    const all = await files.read(commonDir, patterns)
    // Objects after refs: what refs lead to was there before them.
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
      ...(headOid === undefined ? {} : { head: { oid: headOid, ...(branch === undefined ? {} : { branch }) } }),
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
    table: (notBefore = 0) => {
      const now = performance.now()
      if (known === undefined || known.since < notBefore || now - known.since > options.maxAgeMs) {
        // One after the other: what is looked at on the way is shared.
        const before = known?.table.catch(() => {})
        const entry = { since: now, table: before === undefined ? load() : before.then(load) }
        known = entry
        // A failure is not remembered.
        entry.table.catch(() => {
          if (known === entry) known = undefined
        })
      }
      return known.table
    },
  }
}

const hashedAtOnce = 1024 * 1024

async function hashInParts(hash: Hash, bytes: Buffer, slices: Slices): Promise<void> {
  for (let at = 0; at < bytes.length; at += hashedAtOnce) {
    hash.update(bytes.subarray(at, at + hashedAtOnce))
    await slices.rest()
  }
}

/** The refs that are served: the same list where all of them are. */
async function servedOf(all: RefList, slices: Slices): Promise<RefList> {
  if (!all.served.includes(0)) return all
  const writer = createRefListWriter(all.idBytes, { refs: all.length, bytes: all.names.length })
  for (let i = 0; i < all.length; i++) {
    if (all.served[i] === 1) writer.copy(all, i)
    if (slices.due()) await slices.rest()
  }
  return writer.finish()
}
