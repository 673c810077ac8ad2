import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { ResourceError } from '../../core/errors.ts'
import { isPath } from '../../core/path.ts'
import { readHead } from './head.ts'
import type { Launcher } from './launch.ts'
import { createNames, type Names } from './names.ts'

/** A ref that is served, and the object that it is at: a commit, or a tag that leads to one. */
export interface Ref {
  /** Its full name: `refs/heads/main`. */
  readonly name: string
  readonly oid: string
}

/** All refs that are served, as they were at one moment. */
export interface RefTable {
  readonly refs: readonly Ref[]
  /** What `HEAD` is at; absent where it is not served, or has no commit yet. */
  readonly head?: { readonly oid: string; readonly branch?: string }
  /** The branch that `HEAD` is on, also where it has no commit yet. */
  readonly branch?: string
  /** Ids at the ends of everything that is served. */
  readonly tips: readonly string[]
  readonly names: Names
  /** Changes whenever any of it does. */
  readonly fingerprint: string
}

export interface Refs {
  /** A table that is not too old; nor from before a time (of `performance.now()`), where one is given. */
  table(notBefore?: number): Promise<RefTable>
}

export interface RefsOptions {
  readonly launcher: Launcher
  /** The git directory of our own whose refs are the repository's. */
  readonly refsDir: string
  /** The git directory of the repository, for its `HEAD`. */
  readonly gitDir: string
  readonly serves: (ref: string) => boolean
  readonly patterns: readonly string[]
  /** Called before refs are read: checks that the repository is still one, and lends its objects. */
  readonly prepare: () => Promise<void>
  /** Commits whose parents are not there: what can be read of the history depends on them. */
  readonly shallow: () => ReadonlySet<string>
  /** How old a table may become, in milliseconds. */
  readonly maxAgeMs: number
  readonly idLength: number
}

/** As many bytes of refs are read; that is about a million of them. */
const maxBytes = 128 * 1024 * 1024

export function createRefs(options: RefsOptions): Refs {
  const { launcher, refsDir, serves } = options
  let known: { readonly since: number; readonly table: Promise<RefTable> } | undefined
  let last: RefTable | undefined

  const load = async (): Promise<RefTable> => {
    await options.prepare()
    const head = await readHead(options.gitDir, options.idLength)
    const branch = head !== undefined && 'branch' in head ? head.branch : undefined
    const patterns = [...options.patterns, ...(branch === undefined ? [] : [branch])]
    const { bytes, cut } = await launcher.run({
      args: ['for-each-ref', '--format=%(refname)%00%(objectname)', '--end-of-options', ...patterns],
      gitDir: refsDir,
      limit: maxBytes,
      // Many callers may wait for one answer: none of them ends it.
      signal: new AbortController().signal,
      quiet: true,
    })
    if (cut)
      throw new ResourceError('unavailable', 'The repository has too many refs. Serve fewer: see the option "refs".')
    const fingerprint = createHash('sha256')
      .update(JSON.stringify([head ?? null, ...options.shallow()]))
      .update(bytes)
      .digest('hex')
      .slice(0, 32)
    if (last?.fingerprint === fingerprint) return last
    const all = parse(bytes)
    const refs = all.filter(({ name }) => serves(name))
    const oid = head !== undefined && 'oid' in head ? head.oid : all.find(({ name }) => name === branch)?.oid
    const served = serves('HEAD') || (branch !== undefined && serves(branch))
    last = {
      refs,
      ...(oid !== undefined && served ? { head: { oid, ...(branch === undefined ? {} : { branch }) } } : {}),
      ...(branch !== undefined && served ? { branch } : {}),
      tips: [...new Set([...(oid !== undefined && served ? [oid] : []), ...refs.map((ref) => ref.oid)])],
      names: createNames(refs),
      fingerprint,
    }
    return last
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

/** Lines of a name, a NUL and an id. Names that no path can hold are left out. */
function parse(bytes: Buffer): readonly Ref[] {
  const text = bytes.toString('utf8')
  const valid = !text.includes('\ufffd') || isUtf8(bytes)
  return text.split('\n').flatMap((line) => {
    const [name = '', oid = ''] = line.split('\0')
    if (oid === '' || !isPath(name) || (!valid && name.includes('\ufffd'))) return []
    return [{ name, oid }]
  })
}
