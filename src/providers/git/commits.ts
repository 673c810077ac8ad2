import { invalid } from '../../core/errors.ts'
import { isPath } from '../../core/path.ts'
import { createRecent } from '../../core/recent.ts'
import type { Launcher } from './launch.ts'
import { missing, type Objects } from './objects.ts'
import type { Ref } from './ref-list.ts'
import type { RefTable } from './refs.ts'

/** A commit that is served, and how a path called it. */
export interface Named {
  /** Its full id. */
  readonly commit: string
  /** As it is called in paths: `HEAD`, `main`, `refs/heads/log`, or an id. */
  readonly spelled: string
  /** Whether it is called by its full id, so that it will never be another. */
  readonly fixed: boolean
}

/** Finds commits by what paths call them. Only those that can be reached from refs that are served are found. */
export interface Commits {
  /**
   * The commit that a path begins with, and the rest of the path. `undefined` where it begins with none.
   *
   * @throws ResourceError `invalid` (reason `ambiguous-ref`) for what is the name of a branch and of a tag, `not-found` (see
   * `isMissing`) where what it is at is not there.
   */
  find(path: string, table: RefTable, signal: AbortSignal): Promise<(Named & { readonly rest: string }) | undefined>
  /** The commit that a whole text means. */
  named(text: string, table: RefTable, signal: AbortSignal): Promise<Named | undefined>
  /** The commit that a ref is at; `undefined` for a tag of something else. */
  at(ref: Pick<Ref, 'oid'>): Promise<string | undefined>
}

/** The fewest digits of an id that stand for it. */
const fewestDigits = 7
const maxCandidates = 64

export function createCommits(launcher: Launcher, objects: Objects, idLength: number): Commits {
  /** By the fingerprint of the refs and the id. */
  const reachable = createRecent<{ readonly yes: boolean }>(50_000)
  const asking = new Map<string, Promise<boolean>>()

  const at: Commits['at'] = async ({ oid }) => {
    const found = await objects.info(`${oid}^{commit}`)
    return found?.oid
  }

  /** {@link at}, where it matters that what the ref was at may have been pruned since the refs were read: see `isMissing`. */
  const stillAt = async (ref: Pick<Ref, 'oid'>): Promise<string | undefined> => {
    const commit = await at(ref)
    if (commit === undefined && (await objects.info(ref.oid)) === undefined) throw missing(ref.oid)
    return commit
  }

  /** Whether a commit is a tip that is served, or behind one. */
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

  /** git prints the commit where it is not among the ancestors of the tips. */
  const walk = async (commit: string, { isTip, tips, fingerprint }: RefTable): Promise<boolean> => {
    let yes: boolean | undefined = await isTip(commit)
    if (!yes) yes = await isBehind(commit, tips())
    // One broken ref does not hide everything: those that lead to commits are asked again.
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

  /** `undefined` where git cannot say, since something is not there. */
  const isBehind = async (commit: string, ends: AsyncIterable<string>): Promise<boolean | undefined> => {
    const lines: string[] = []
    for await (const end of ends) lines.push(`^${end}\n`)
    if (lines.length === 0) return false
    const input = `${commit}\n${lines.join('')}`
    // Not --ignore-missing: a commit that was pruned, and is still remembered here, would seem to be behind the tips.
    const args = ['rev-list', '--max-count=1', '--stdin']
    // Several callers may wait for the answer: none of them ends it.
    const signal = new AbortController().signal
    const { bytes, code } = await launcher.run({ args, input, limit: 1000, signal, allows: [128] })
    return code === 0 ? bytes.length === 0 : undefined
  }

  /** A commit by its id, or the first digits of it. */
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
    // Whether others begin like it counts only among what is served: the rest is not there.
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
