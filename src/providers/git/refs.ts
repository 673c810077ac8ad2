import { isUtf8 } from 'node:buffer'
import { createHash, type Hash } from 'node:crypto'
import { invalid, type ResourceError, unavailable } from '../../core/errors.ts'
import type { PathTest } from '../../core/glob.ts'
import { createSlices, sortInSlices, type TimeSlices } from '../../core/kit/event-loop-yield.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { defined } from '../../core/kit/object.ts'
import { firstIndex } from '../../core/kit/sorted.ts'
import { comparePaths, isPath } from '../../core/path.ts'
import type { Launcher } from './launch.ts'
import { missingObjectError, type ObjectDatabase } from './objects.ts'

/** The format of `git for-each-ref` that a {@link RefList} is read from. It begins with `*` for the branch of `HEAD`, with a space otherwise. */
const refFormat = '%(HEAD)%(objectname) %(refname)/'

/** A list of refs, in the bytes that git wrote. Sorted by the bytes of `name/`, so that the refs below a directory of names are one range. */
export interface RefList {
  readonly length: number
  /** Lines of {@link refFormat}, of these refs and of others. */
  readonly bytes: Buffer
  /** The offset of the id of each ref. */
  readonly starts: Uint32Array
  readonly idLength: number
}

/** Range of indices from `start` up to but not including `end`. */
export interface IndexRange {
  readonly start: number
  readonly end: number
}

interface Ref {
  /** Full name of the ref: `refs/heads/main`. */
  readonly name: string
  /** The id of the object of the ref, which need not be a commit. */
  readonly oid: string
}

const [lineFeed, star, slash] = [0x0a, 0x2a, 0x2f]
const maxRefs = 1_000_000
/** Maximum length of a ref name, in bytes: longer refs are left out. */
export const maxNameBytes = 4096

/** Returns the offset of the name of a ref, which a slash and a line feed follow. */
function nameStart({ starts, idLength }: RefList, index: number): number {
  return (starts[index] ?? 0) + idLength + 1
}

export function refNameAt(list: RefList, index: number): string {
  const start = nameStart(list, index)
  return list.bytes.toString('utf8', start, list.bytes.indexOf(lineFeed, start) - 1)
}

export function refIdAt({ bytes, starts, idLength }: RefList, index: number): string {
  return bytes.toString('latin1', starts[index], (starts[index] ?? 0) + idLength)
}

export function refAt(list: RefList, index: number): Ref {
  return { name: refNameAt(list, index), oid: refIdAt(list, index) }
}

/** Whether a ref whose name begins with a key (which ends in a slash) has no longer name: a search by prefix also finds longer ones. */
export function isWholeName(list: RefList, index: number, key: string): boolean {
  return list.bytes[nameStart(list, index) + Buffer.byteLength(key)] === lineFeed
}

export async function* refsIn(list: RefList, slices: TimeSlices): AsyncGenerator<Ref> {
  for (let i = 0; i < list.length; i++) {
    yield refAt(list, i)
    if (slices.due()) await slices.rest()
  }
}

/** Returns the index of the ref with a name; -1 when there is none. */
export function indexOfRef(list: RefList, name: string): number {
  const { start, end } = rangeBelow(list, `${name}/`)
  return start < end && isWholeName(list, start, `${name}/`) ? start : -1
}

export function rangeBelow(
  list: RefList,
  prefix: string,
  within: IndexRange = { start: 0, end: list.length },
): IndexRange {
  const key = Buffer.from(prefix)
  const start = firstIndex(within.start, within.end, (index) => comparePrefix(list, index, key) >= 0)
  return { start, end: firstIndex(start, within.end, (index) => comparePrefix(list, index, key) > 0) }
}

/** Returns 0 when `name/` begins with the key; negative when it sorts before all names that do, positive when it sorts after them. */
function comparePrefix(list: RefList, index: number, key: Uint8Array): number {
  const start = nameStart(list, index)
  for (let k = 0; k < key.length; k++) {
    const difference = (list.bytes[start + k] ?? 0) - (key[k] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** Compares the names of two refs by their bytes, each with a final `/`. */
export function compareRefs(a: RefList, i: number, b: RefList, j: number): number {
  const [from, start] = [nameStart(a, i), nameStart(b, j)]
  for (let k = 0; ; k++) {
    const [x, y] = [a.bytes[from + k] ?? lineFeed, b.bytes[start + k] ?? lineFeed]
    // No byte of a name is smaller than a line feed.
    if (x !== y || x === lineFeed) return x - y
  }
}

export function isSameId(a: RefList, i: number, b: RefList, j: number): boolean {
  const [from, start] = [a.starts[i] ?? 0, b.starts[j] ?? 0]
  return a.idLength === b.idLength && a.bytes.compare(b.bytes, start, start + b.idLength, from, from + a.idLength) === 0
}

async function holdsId(
  { bytes, starts, idLength, length }: RefList,
  oid: string,
  slices: TimeSlices,
): Promise<boolean> {
  const id = Buffer.from(oid)
  if (id.length !== idLength) return false
  for (let i = 0; i < length; i++) {
    const start = starts[i] ?? 0
    let k = 0
    while (k < idLength && bytes[start + k] === id[k]) k++
    if (k === idLength) return true
    if (slices.due()) await slices.rest()
  }
  return false
}

/**
 * Parses lines of {@link refFormat}. Names that are invalid in git or as paths, are too long, or are refused by `keeps`, are left out.
 *
 * @throws ResourceError `unavailable` for more than a million refs.
 */
export async function parseRefs(
  bytes: Buffer,
  idLength: number,
  keeps: (name: string) => boolean,
  slices: TimeSlices,
): Promise<RefList> {
  let lines = 0
  for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) {
    lines++
    if (slices.due()) await slices.rest()
  }
  if (lines > maxRefs) throw tooManyRefs()
  const starts = new Uint32Array(lines)
  let length = 0
  for (let at = 0, end = bytes.indexOf(lineFeed); end !== -1; at = end + 1, end = bytes.indexOf(lineFeed, at)) {
    const start = at + 1 + idLength + 1
    const name = bytes.toString('utf8', start, end - 1)
    const isText = !name.includes('\ufffd') || isUtf8(bytes.subarray(start, end))
    if (isText && end - start <= maxNameBytes + 1 && isServable(name) && keeps(name)) starts[length++] = at + 1
    if (slices.due()) await slices.rest()
  }
  return sortRefs({ length, bytes, starts: starts.subarray(0, length), idLength }, slices)
}

/** Sorts a list by `name/`. git has nearly this order: it sorts names without a final `/`. */
async function sortRefs(list: RefList, slices: TimeSlices): Promise<RefList> {
  let isSorted = true
  for (let i = 1; i < list.length && isSorted; i++) {
    isSorted = compareRefs(list, i - 1, list, i) < 0
    if (slices.due()) await slices.rest()
  }
  if (isSorted) return list
  const indices: number[] = []
  for (let i = 0; i < list.length; i++) {
    indices.push(i)
    if (slices.due()) await slices.rest()
  }
  const order = await sortInSlices(indices, (a, b) => compareRefs(list, a, list, b), slices)
  const starts = new Uint32Array(list.length)
  for (const [position, index] of order.entries()) {
    starts[position] = list.starts[index] ?? 0
    if (slices.due()) await slices.rest()
  }
  return { ...list, starts }
}

/** Returns the end of the segment that follows a prefix in a ref name: the offset after its `/`. */
function childEnd(list: RefList, index: number, prefixLength: number): number {
  return list.bytes.indexOf(slash, nameStart(list, index) + prefixLength) + 1
}

function isServable(name: string): boolean {
  return isRefName(name) && isPath(name)
}

/** Whether a text is a valid ref name: git-check-ref-format(1). */
function isRefName(name: string): boolean {
  if (!name.startsWith('refs/') || name.endsWith('.') || name.includes('..') || name.includes('@{')) return false
  if (/[\p{Cc} ~^:?*[\\]/u.test(name)) return false
  return name.split('/').every((part) => part !== '' && !part.startsWith('.') && !part.endsWith('.lock'))
}

function tooManyRefs(): ResourceError {
  return unavailable('The repository has too many refs. Serve fewer with the option "refs".')
}

export interface NameNode {
  readonly ref?: Ref
  /** Whether both a branch and a tag have this name, so that it means neither. */
  readonly ambiguous: boolean
  readonly goesOn: boolean
  child(segment: string): NameNode | undefined
  children(slices: TimeSlices): Promise<NameChildren>
}

/** The child segments of a name in path order, each with a final `/`. They are decoded on demand. */
export interface NameChildren {
  readonly length: number
  keyAt(index: number): string
}

interface NamedPath {
  readonly ref: Ref
  /** The path after the name; empty when there is none. */
  readonly rest: string
}

/** First segments of paths that have another meaning; a branch or tag of such a name is addressed by its full name. */
const reserved = new Set(['HEAD', 'refs', 'log', 'commits', 'diff', 'blame', 'branches', 'tags', 'status'])
const maxRemembered = 1_000_000

interface RefsBelow extends IndexRange {
  readonly prefix: string
}

/** Finds refs by their names in paths, by binary search in the list: no object is created for a ref before it is requested. */
export function createRefNames(list: RefList) {
  const remembered = createLruCache<NameChildren>(maxRemembered, ({ length }) => length + 1)
  const everything = { start: 0, end: list.length }

  const below = (prefix: string, within: IndexRange): readonly RefsBelow[] => {
    const range = rangeBelow(list, prefix, within)
    return range.start === range.end ? [] : [{ ...range, prefix }]
  }

  const isNamed = ({ start, prefix }: RefsBelow) => isWholeName(list, start, prefix)

  const nodeOf = (ranges: readonly RefsBelow[]): NameNode | undefined => {
    if (ranges.length === 0) return undefined
    const namedRanges = ranges.filter(isNamed)
    const [only] = namedRanges
    const going = ranges.map((range) => (isNamed(range) ? { ...range, start: range.start + 1 } : range))
    return {
      ...(namedRanges.length === 1 && only !== undefined ? { ref: refAt(list, only.start) } : {}),
      ambiguous: namedRanges.length > 1,
      goesOn: going.some(({ start, end }) => start < end),
      child: (segment) => nodeOf(going.flatMap((range) => below(`${range.prefix}${segment}/`, range))),
      children: async (slices) => {
        const key = ranges.map(({ prefix }) => prefix).join('\0')
        const nameChildren = remembered.get(key)
        if (nameChildren !== undefined) return nameChildren
        const children = await childrenIn(list, going, slices)
        remembered.set(key, children)
        return children
      },
    }
  }

  /** Returns the node of the first segment of a name. `refs` begins full names; any other segment begins short names of branches and tags. */
  const topOf = (first: string | undefined): NameNode | undefined => {
    if (first === undefined) return undefined
    if (first === 'refs') return nodeOf(below('refs/', everything))
    if (isTaken(first)) return undefined
    return nodeOf([...below(`refs/heads/${first}/`, everything), ...below(`refs/tags/${first}/`, everything)])
  }

  return {
    /**
     * Finds the longest ref name that a path begins with: the full name of a ref, or the name of a branch or tag without `refs/heads/` or
     * `refs/tags/`. `ambiguous` when both a branch and a tag have that name.
     */
    find: (path: string): NamedPath | 'ambiguous' | undefined => {
      const segments = path.split('/')
      let node = topOf(segments[0])
      let namedPath: NamedPath | 'ambiguous' | undefined
      for (let depth = 1; node !== undefined; depth++) {
        if (node.ambiguous) namedPath = 'ambiguous'
        else if (node.ref !== undefined) namedPath = { ref: node.ref, rest: segments.slice(depth).join('/') }
        const segment = segments[depth]
        node = segment === undefined ? undefined : node.child(segment)
      }
      return namedPath
    },
    /** Returns the node of a directory of names: `refs/`, `refs/heads/feature/`, `feature/`. Undefined without segments. */
    nodeAt: (segments: readonly string[]): NameNode | undefined => {
      const [first, ...rest] = segments
      return rest.reduce<NameNode | undefined>((node, segment) => node?.child(segment), topOf(first))
    },
    /** Returns the shortest unambiguous name of a ref. */
    shortest: (name: string): string => {
      const short = shortName(name)
      if (short === undefined) return name
      const other = name.startsWith('refs/heads/') ? 'refs/tags/' : 'refs/heads/'
      return indexOfRef(list, `${other}${short}`) === -1 ? short : name
    },
  }
}

type RefNames = ReturnType<typeof createRefNames>

async function childrenIn(list: RefList, ranges: readonly RefsBelow[], slices: TimeSlices): Promise<NameChildren> {
  const all = await Promise.all(
    ranges.map(async (range) => ({
      length: Buffer.byteLength(range.prefix),
      begins: await beginsIn(list, range, slices),
    })),
  )
  const keyOf = (prefixLength: number, index: number) =>
    list.bytes.toString('utf8', nameStart(list, index) + prefixLength, childEnd(list, index, prefixLength))
  const [first, second] = all
  if (first === undefined) return { length: 0, keyAt: () => '' }
  if (second === undefined)
    return { length: first.begins.length, keyAt: (index) => keyOf(first.length, first.begins[index] ?? 0) }
  const result: string[] = []
  for (let i = 0, j = 0; i < first.begins.length || j < second.begins.length; ) {
    const a = first.begins[i] === undefined ? undefined : keyOf(first.length, first.begins[i] ?? 0)
    const b = second.begins[j] === undefined ? undefined : keyOf(second.length, second.begins[j] ?? 0)
    const order = a === undefined ? 1 : b === undefined ? -1 : comparePaths(a, b)
    result.push((order <= 0 ? a : b) ?? '')
    if (order <= 0) i++
    if (order >= 0) j++
    if (slices.due()) await slices.rest()
  }
  return { length: result.length, keyAt: (index) => result[index] ?? '' }
}

async function beginsIn(list: RefList, { start, end, prefix }: RefsBelow, slices: TimeSlices): Promise<Uint32Array> {
  const begins = new Uint32Array(end - start)
  const length = Buffer.byteLength(prefix)
  let count = 0
  for (let at = start; at < end; ) {
    begins[count++] = at
    const last = childEnd(list, at, length)
    // Most children are a single ref, for which no search is needed.
    const child = list.bytes.subarray(nameStart(list, at), last)
    const goesOn = list.bytes[last] !== 0x0a || (at + 1 < end && comparePrefix(list, at + 1, child) === 0)
    at = goesOn ? rangeBelow(list, child.toString('utf8'), { start: at, end }).end : at + 1
    if (slices.due()) await slices.rest()
  }
  return begins.slice(0, count)
}

/**
 * Returns the name of a branch or tag without `refs/heads/` or `refs/tags/`; undefined for other refs, and when the short name has another
 * meaning: a reserved name, or an id.
 */
export function shortName(name: string): string | undefined {
  const short = /^refs\/(?:heads|tags)\/(.+)$/s.exec(name)?.[1]
  return short === undefined || isTaken(short.split('/', 1)[0] ?? '') ? undefined : short
}

function isTaken(first: string): boolean {
  return reserved.has(first) || /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(first)
}

export interface RefTable {
  readonly refs: RefList
  /** The commit of `HEAD`; undefined when it is not served, or has no commit yet. */
  readonly head?: { readonly oid: string; readonly branch?: string }
  /** The branch of `HEAD`, even if it has no commit yet. */
  readonly branch?: string
  isTip(oid: string): Promise<boolean>
  /** Yields the object ids of all served refs; duplicates are possible. */
  tips(): AsyncIterable<string>
  readonly names: RefNames
  /** Hash that changes whenever any part of the table changes. */
  readonly fingerprint: string
}

export interface RefsOptions {
  /** Whether a ref (its full name, or `HEAD`) is served. */
  readonly serves: PathTest
  /** Names of the refs and ref directories to read: the parts of the globs before their first wildcard. */
  readonly patterns: readonly string[]
  readonly onEntries?: (entries: number) => void
  readonly launcher: Launcher
  /** Called before refs are read: checks that the repository is still valid, and shows git its current state. */
  readonly refresh: () => Promise<Refreshed>
  readonly maxAgeMs: number
  readonly idLength: number
}

interface Refreshed {
  /** Refs, and directories of refs, that are not served. */
  readonly leftOut: readonly string[]
  /** Commits whose parents are missing: the readable history depends on them. */
  readonly shallow: ReadonlySet<string>
}

const maxListBytes = 256 * 1024 * 1024

/** Number of refs that git lists in a small part of a second. With more of them, the maximum age is longer in proportion, up to ten times. */
const quicklyListed = 50_000

export function createRefs(options: RefsOptions) {
  const { launcher, serves, idLength } = options
  let cachedRefs: { readonly since: number; readonly table: Promise<RefTable> } | undefined
  let last: RefTable | undefined

  const ask = async () => {
    const signal = new AbortController().signal
    const { bytes, cut } = await launcher.run({
      args: ['for-each-ref', `--format=${refFormat}`, '--end-of-options', ...options.patterns],
      limit: maxListBytes,
      signal,
      quiet: true,
    })
    if (cut) throw tooManyRefs()
    const branch = bytes[0] === star ? 0 : bytes.indexOf('\n*') + 1
    if (bytes[branch] === star) {
      const [oid = '', name = ''] = bytes.toString('utf8', branch + 1, bytes.indexOf('/\n', branch)).split(' ')
      return { bytes, name, oid }
    }
    // No commit yet, a detached HEAD, or a branch that is not asked for.
    const plain = { limit: maxNameBytes, signal, quiet: true, allows: [1, 128] }
    const [symbolic, head] = await Promise.all([
      launcher.run({ args: ['symbolic-ref', '--quiet', 'HEAD'], ...plain }),
      launcher.run({ args: ['rev-parse', '--quiet', '--verify', 'HEAD'], ...plain }),
    ])
    const name = symbolic.code === 0 ? symbolic.bytes.toString('utf8').trimEnd() : undefined
    const oid = head.code === 0 ? head.bytes.toString('latin1').trimEnd() : undefined
    return { bytes, name, ...defined({ oid }) }
  }

  const load = async (): Promise<RefTable> => {
    const { leftOut, shallow } = await options.refresh()
    const slices = createSlices(options.onEntries)
    const { bytes, name, oid } = await ask()
    const isLeftOut = (ref: string) => leftOut.some((one) => ref === one || ref.startsWith(`${one}/`))
    const isBranch = name?.startsWith('refs/heads/') === true && isServable(name) && !isLeftOut(name)
    const branch = isBranch ? name : undefined
    const isServed = serves('HEAD') || (branch !== undefined && serves(branch))
    // A HEAD that names something else than a valid branch counts as being on no commit. A detached HEAD keeps its commit.
    const headOid = isServed && (name === undefined || isBranch) ? oid : undefined
    const hash = createHash('sha256').update(JSON.stringify([name ?? null, oid ?? null, leftOut, ...shallow]))
    await hashInParts(hash, bytes, slices)
    const fingerprint = hash.digest('hex').slice(0, 32)
    if (last?.fingerprint === fingerprint) return last
    const refs = await parseRefs(bytes, idLength, (ref) => serves(ref) && !isLeftOut(ref), slices)
    last = {
      refs,
      ...(headOid === undefined ? {} : { head: { oid: headOid, ...defined({ branch }) } }),
      ...(branch !== undefined && isServed ? { branch } : {}),
      isTip: async (id) => id === headOid || holdsId(refs, id, createSlices(options.onEntries)),
      tips: async function* () {
        if (headOid !== undefined) yield headOid
        for await (const ref of refsIn(refs, createSlices(options.onEntries))) yield ref.oid
      },
      names: createRefNames(refs),
      fingerprint,
    }
    return last
  }

  return {
    /** Returns a table that is about `maxAgeMs` old at most (see {@link quicklyListed}), and not older than `notBefore` (`performance.now()`). */
    table: (notBefore = 0): Promise<RefTable> => {
      const now = performance.now()
      const maxAgeMs = options.maxAgeMs * Math.min(10, Math.max(1, (last?.refs.length ?? 0) / quicklyListed))
      if (cachedRefs === undefined || cachedRefs.since < notBefore || now - cachedRefs.since > maxAgeMs) {
        // One load after the other, so that they share unchanged data.
        const before = cachedRefs?.table.catch(() => {})
        const entry = { since: now, table: before === undefined ? load() : before.then(load) }
        cachedRefs = entry
        entry.table.catch(() => {
          if (cachedRefs === entry) cachedRefs = undefined
        })
      }
      return cachedRefs.table
    },
  }
}

export type Refs = ReturnType<typeof createRefs>

const hashPieceBytes = 1024 * 1024

async function hashInParts(hash: Hash, bytes: Buffer, slices: TimeSlices): Promise<void> {
  for (let at = 0; at < bytes.length; at += hashPieceBytes) {
    hash.update(bytes.subarray(at, at + hashPieceBytes))
    await slices.rest()
  }
}

export interface NamedCommit {
  readonly commit: string
  /** The name of the commit in paths: `HEAD`, `main`, `refs/heads/log`, or an id. */
  readonly spelled: string
  /** Whether the name is the full id, so that it always means the same commit. */
  readonly fixed: boolean
}

/** Resolves the names of commits in paths. Finds only commits that are reachable from served refs. */
export interface CommitResolver {
  /**
   * Finds the commit that a path begins with, and the rest of the path. Undefined when the path begins with none.
   *
   * @throws ResourceError `invalid` (reason `uri`) for the name of both a branch and a tag, `not-found` (see `isMissingObjectError`) when
   * the object of the ref is missing.
   */
  find(
    path: string,
    table: RefTable,
    signal: AbortSignal,
  ): Promise<(NamedCommit & { readonly rest: string }) | undefined>
  /** Like `find`, but the name must be the whole text. */
  named(text: string, table: RefTable, signal: AbortSignal): Promise<NamedCommit | undefined>
  /** Returns the commit of a ref; undefined for a tag of another object. */
  at(ref: Pick<Ref, 'oid'>): Promise<string | undefined>
}

const fewestDigits = 7
const maxCandidates = 64

export function createCommitResolver(launcher: Launcher, objects: ObjectDatabase, idLength: number): CommitResolver {
  const reachable = createLruCache<{ readonly yes: boolean }>(50_000)
  const asking = new Map<string, Promise<boolean>>()

  const at: CommitResolver['at'] = async ({ oid }) => {
    const object = await objects.info(`${oid}^{commit}`)
    return object?.oid
  }

  /** Like {@link at}, but throws when the object of the ref may have been pruned since: see `isMissingObjectError`. */
  const stillAt = async (ref: Pick<Ref, 'oid'>): Promise<string | undefined> => {
    const commit = await at(ref)
    if (commit === undefined && (await objects.info(ref.oid)) === undefined) throw missingObjectError(ref.oid)
    return commit
  }

  /** Whether a commit is a served tip or an ancestor of one. */
  const isReachable = async (commit: string, table: RefTable): Promise<boolean> => {
    const key = `${table.fingerprint} ${commit}`
    const cachedAnswer = reachable.get(key)
    if (cachedAnswer !== undefined) return cachedAnswer.yes
    const answer = asking.get(key) ?? walk(commit, table).finally(() => asking.delete(key))
    asking.set(key, answer)
    return answer
  }

  const walk = async (commit: string, { isTip, tips, fingerprint }: RefTable): Promise<boolean> => {
    let yes: boolean | undefined = await isTip(commit)
    if (!yes) yes = await isBehind(commit, tips())
    // A broken ref must not hide everything: retry with the refs that lead to commits.
    yes ??= await isBehind(commit, commitsAt(tips()))
    if (yes !== undefined) reachable.set(`${fingerprint} ${commit}`, { yes })
    return yes ?? false
  }

  const commitsAt = async function* (tips: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const oid of tips) {
      const commit = await at({ oid })
      if (commit !== undefined) yield commit
    }
  }

  /** Whether a commit is an ancestor of one of the ends: git prints it if it is not. Undefined when an object is missing. */
  const isBehind = async (commit: string, ends: AsyncIterable<string>): Promise<boolean | undefined> => {
    const lines: string[] = []
    for await (const end of ends) lines.push(`^${end}\n`)
    if (lines.length === 0) return false
    const input = `${commit}\n${lines.join('')}`
    // Not --ignore-missing: a pruned commit that is still cached here would then seem to be an ancestor of the tips.
    const args = ['rev-list', '--max-count=1', '--stdin']
    // Several callers may share the answer, so no caller's signal aborts it.
    const signal = new AbortController().signal
    const { bytes, code } = await launcher.run({ args, input, limit: 1000, signal, allows: [128] })
    return code === 0 ? bytes.length === 0 : undefined
  }

  const byId = async (digits: string, table: RefTable, signal: AbortSignal): Promise<string | undefined> => {
    if (digits.length === idLength) {
      const object = await objects.info(digits)
      return object?.type === 'commit' && (await isReachable(digits, table)) ? digits : undefined
    }
    const args = ['rev-parse', `--disambiguate=${digits}`]
    const { bytes } = await launcher.run({ args, limit: 100_000, signal })
    const candidates = bytes.toString('latin1').split('\n').slice(0, -1)
    if (candidates.length > maxCandidates) return undefined
    const commits: string[] = []
    // Only served commits can make an abbreviation ambiguous, because the others must look absent.
    for (const candidate of candidates) {
      const object = await objects.info(candidate)
      if (object?.type === 'commit' && (await isReachable(candidate, table))) commits.push(candidate)
    }
    return commits.length === 1 ? commits[0] : undefined
  }

  const find: CommitResolver['find'] = async (path, table, signal) => {
    const slash = path.indexOf('/')
    const first = slash === -1 ? path : path.slice(0, slash)
    const behind = slash === -1 ? '' : path.slice(slash + 1)
    if (first === 'HEAD') {
      const commit = table.head === undefined ? undefined : await stillAt(table.head)
      return commit === undefined ? undefined : { commit, spelled: first, fixed: false, rest: behind }
    }
    const isId = /^[0-9a-f]+$/.test(first) && first.length >= fewestDigits && first.length <= idLength
    if (!isId || first.length < idLength) {
      const namedPath = table.names.find(path)
      if (namedPath === 'ambiguous')
        throw invalid(
          'The ref is the name of both a branch and a tag. Write refs/heads/… or refs/tags/… before it.',
          'uri',
        )
      if (namedPath !== undefined) {
        const commit = await stillAt(namedPath.ref)
        const spelled = namedPath.rest === '' ? path.replace(/\/$/, '') : path.slice(0, -namedPath.rest.length - 1)
        return commit === undefined ? undefined : { commit, spelled, fixed: false, rest: namedPath.rest }
      }
    }
    if (!isId) return undefined
    const commit = await byId(first, table, signal)
    return commit === undefined ? undefined : { commit, spelled: first, fixed: first.length === idLength, rest: behind }
  }

  return {
    find,
    at,
    named: async (text, table, signal) => {
      if (text === '' || text.endsWith('/') || !isPath(text)) return undefined
      const commit = await find(text, table, signal)
      return commit?.rest === '' ? commit : undefined
    },
  }
}
