import { invalid } from '../../core/errors.ts'
import { createRecent } from '../../core/kit/lru.ts'
import { isPath } from '../../core/path.ts'
import type { Launcher } from './launch.ts'
import { missing, type Objects } from './objects.ts'
import type { Ref } from './ref-list.ts'
import type { RefTable } from './refs.ts'

/** A commit that is served, with the name by which a path refers to it. */
export interface Named {
  /** Full id. */
  readonly commit: string
  /** Its name in paths: `HEAD`, `main`, `refs/heads/log`, or an id. */
  readonly spelled: string
  /** Whether the name is the full id, so that it always means the same commit. */
  readonly fixed: boolean
}

/** Resolves the names of commits in paths. Finds only commits that are reachable from served refs. */
export interface Commits {
  /**
   * Finds the commit that a path begins with, and the rest of the path. Undefined when the path begins with none.
   *
   * @throws ResourceError `invalid` (reason `ambiguous-ref`) for the name of both a branch and a tag, `not-found` (see `isMissing`) when the
   * object of the ref is missing.
   */
  find(path: string, table: RefTable, signal: AbortSignal): Promise<(Named & { readonly rest: string }) | undefined>
  /** Finds the commit that a whole text names. */
  named(text: string, table: RefTable, signal: AbortSignal): Promise<Named | undefined>
  /** Returns the commit of a ref; undefined for a tag of another object. */
  at(ref: Pick<Ref, 'oid'>): Promise<string | undefined>
}

/** Minimum number of digits of an abbreviated id. */
const fewestDigits = 7
const maxCandidates = 64

export function createCommits(launcher: Launcher, objects: Objects, idLength: number): Commits {
  /** Cache by the fingerprint of the refs and the commit id. */
  const reachable = createRecent<{ readonly yes: boolean }>(50_000)
  const asking = new Map<string, Promise<boolean>>()

  const at: Commits['at'] = async ({ oid }) => {
    const found = await objects.info(`${oid}^{commit}`)
    return found?.oid
  }

  /** {@link at}, but throws when the object of the ref may have been pruned since the refs were read: see `isMissing`. */
  const stillAt = async (ref: Pick<Ref, 'oid'>): Promise<string | undefined> => {
    const commit = await at(ref)
    if (commit === undefined && (await objects.info(ref.oid)) === undefined) throw missing(ref.oid)
    return commit
  }

  /** Whether a commit is a served tip or an ancestor of one. */
  const isReachable = async (commit: string, table: RefTable): Promise<boolean> => {
    const key = `${table.fingerprint} ${commit}`
    const known = reachable.get(key)
    if (known !== undefined) return known.yes
    let asked = asking.get(key)
    if (asked === undefined) {
      asked = walk(commit, table).finally(() => asking.delete(key))
      asking.set(key, asked)
    }
    return asked
  }

  /** git prints the commit if it is not an ancestor of the tips. */
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

  /** Returns undefined when git cannot tell because an object is missing. */
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

  /** Finds a commit by its id or an abbreviation. */
  const byId = async (digits: string, table: RefTable, signal: AbortSignal): Promise<string | undefined> => {
    if (digits.length === idLength) {
      const found = await objects.info(digits)
      return found?.type === 'commit' && (await isReachable(digits, table)) ? digits : undefined
    }
    const args = ['rev-parse', `--disambiguate=${digits}`]
    const { bytes } = await launcher.run({ args, limit: 100_000, signal })
    const candidates = bytes.toString('latin1').split('\n').slice(0, -1)
    if (candidates.length > maxCandidates) return undefined
    const served: string[] = []
    // Only served commits count for ambiguity: the others must look absent.
    for (const candidate of candidates) {
      const found = await objects.info(candidate)
      if (found?.type === 'commit' && (await isReachable(candidate, table))) served.push(candidate)
    }
    return served.length === 1 ? served[0] : undefined
  }

  const find: Commits['find'] = async (path, table, signal) => {
    const slash = path.indexOf('/')
    const first = slash === -1 ? path : path.slice(0, slash)
    const behind = slash === -1 ? '' : path.slice(slash + 1)
    if (first === 'HEAD') {
      const commit = table.head === undefined ? undefined : await stillAt(table.head)
      return commit === undefined ? undefined : { commit, spelled: first, fixed: false, rest: behind }
    }
    const isId = /^[0-9a-f]+$/.test(first) && first.length >= fewestDigits && first.length <= idLength
    if (!isId || first.length < idLength) {
      const found = table.names.find(path)
      if (found === 'ambiguous')
        throw invalid(
          'This is the name of a branch and of a tag. Write refs/heads/… or refs/tags/… before it.',
          'ambiguous-ref',
        )
      if (found !== undefined) {
        const commit = await stillAt(found.ref)
        const spelled = found.rest === '' ? path.replace(/\/$/, '') : path.slice(0, -found.rest.length - 1)
        return commit === undefined ? undefined : { commit, spelled, fixed: false, rest: found.rest }
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
      const found = await find(text, table, signal)
      return found?.rest === '' ? found : undefined
    },
  }
}
