import { invalid } from './errors.ts'
import { compileGlobs, compileReach, type PathTest, type Reach } from './glob.ts'
import { requireArgument } from './kit/object.ts'
import { mayHaveOtherSpellings } from './path.ts'
import type { Principal } from './provider.ts'
import { closedAncestor } from './tree.ts'
import { parseAddress } from './uri.ts'

export interface Access {
  /**
   * Returns whether a principal may see a path of a mount.
   * @param others Other paths of the same tool or prompt ({@link pathsOfNames}): a rule applies if it matches `path` or
   * any of them.
   */
  (principal: Principal, path: string, others?: readonly string[]): boolean
  /**
   * Returns how much a principal may see below a directory (empty, or ending in `/`), by the rules alone. Entries that
   * exist make no difference.
   */
  readonly reach?: (principal: Principal, directory: string) => Reach
  /**
   * Returns a key for a principal. Principals with the same key may see the same paths, now and later. When undefined,
   * any two principals may see different paths.
   */
  readonly callers?: (principal: Principal) => string
}

/**
 * Allows or denies some roles the paths that `match` matches (default: every path). The role `*` stands for everybody.
 */
export interface AccessRule {
  readonly allow?: readonly string[] | undefined
  readonly deny?: readonly string[] | undefined
  readonly match?: string | readonly string[] | undefined
}

/** The decision on a path, with the index of the deciding rule. A denial without a rule means that no rule allows the path. */
export type Verdict =
  | { readonly allowed: true; readonly rule: number }
  | { readonly allowed: false; readonly rule: number | undefined }

/**
 * Compiles access rules, whose order makes no difference: a path is visible when a rule allows it and none denies it.
 * An empty list denies everything to everyone.
 * @throws ResourceError `invalid` for a malformed rule or glob.
 */
export function compileAccess(rules: readonly AccessRule[]): Access {
  requireArgument('compileAccess(rules)', 'rules', rules, 'an array')
  rules.forEach(requireRule)
  const judge = compileVerdict(rules)
  const reach = compileRulesReach(rules)
  const roleNames = [...new Set(rules.flatMap(({ allow = [], deny = [] }) => [...allow, ...deny]))].sort()
  const callers = ({ roles }: Principal) => JSON.stringify(roleNames.filter((role) => roles.includes(role)))
  const isAllowed: Access = (principal, path, others) => judge(principal, path, others).allowed
  return Object.assign(isAllowed, { reach, callers })
}

/**
 * Returns further paths by which access rules may match a tool or prompt: one for each of its other names, such as the
 * one that it has on another server. Empty for a path that does not begin with `=`.
 */
export function pathsOfNames(path: string, names: readonly string[]): readonly string[] {
  if (!path.startsWith('=')) return []
  const directory = path.slice(0, path.indexOf('/') + 1)
  return [...new Set(names)].map((name) => `${directory}${name}`).filter((other) => other !== path)
}

/** A misspelt `deny` must not be ignored, because it would deny nothing. */
function requireRule(rule: AccessRule): void {
  const call = 'A rule of compileAccess(rules)'
  requireArgument('compileAccess(rules)', 'a rule', rule, 'an object')
  const unknown = Object.keys(rule).find((key) => !['allow', 'deny', 'match'].includes(key))
  if (unknown !== undefined)
    throw invalid(`${call} has the key "${unknown}". Its keys are allow, deny and match.`, 'argument')
  for (const key of ['allow', 'deny'] as const) requireArgument(call, key, rule[key] ?? [], 'an array')
}

/** Compiles access rules into a function that also returns the deciding rule. */
export function compileVerdict(
  rules: readonly AccessRule[],
): (principal: Principal, path: string, others?: readonly string[]) => Verdict {
  const unnamed: Verdict = { allowed: false, rule: undefined }
  const compiled = rules.map((rule, index) => ({
    names: compileRoleTests(rule),
    matches: rule.match === undefined ? () => true : matchEvery([rule.match].flat()),
    allowed: { allowed: true, rule: index } as const,
    denied: { allowed: false, rule: index } as const,
  }))
  return (principal, path, others = []) => {
    let allowed: Verdict = unnamed
    let denied: Verdict | undefined
    for (const rule of compiled) {
      const denies = rule.names.deny(principal)
      if (!denies && !rule.names.allow(principal)) continue
      if ([path, ...others].filter(rule.matches).length === 0) continue
      if (denies) denied ??= rule.denied
      else if (!allowed.allowed) allowed = rule.allowed
    }
    return denied ?? allowed
  }
}

/**
 * Unlike `compileGlobs`, tries the globs after a match as well, so that the time does not reveal whether a rule denies
 * a path.
 */
function matchEvery(patterns: readonly string[]): PathTest {
  const tests = patterns.map((pattern) => compileGlobs([pattern]))
  return (path) => tests.filter((matches) => matches(path)).length > 0
}

function compileRulesReach(rules: readonly AccessRule[]): (principal: Principal, directory: string) => Reach {
  const compiled = rules.map((rule) => ({
    names: compileRoleTests(rule),
    reach: rule.match === undefined ? () => 'all' as const : compileReach([rule.match].flat()),
  }))
  return (principal, directory) => {
    let allowed: Reach = 'none'
    let denied: Reach = 'none'
    for (const { names, reach } of compiled) {
      if (names.deny(principal)) denied = wider(denied, reach(directory))
      else if (names.allow(principal)) allowed = wider(allowed, reach(directory))
    }
    if (denied === 'all' || allowed === 'none') return 'none'
    return allowed === 'all' && denied === 'none' ? 'all' : 'some'
  }
}

function wider(a: Reach, b: Reach): Reach {
  if (a === 'all' || b === 'all') return 'all'
  return a === 'some' || b === 'some' ? 'some' : 'none'
}

function compileRoleTests(rule: AccessRule) {
  const hasRole = (names: readonly string[] | undefined) => {
    const roles = new Set(names)
    if (roles.has('*')) return () => true
    return (principal: Principal) => principal.roles.some((role) => roles.has(role))
  }
  return { allow: hasRole(rule.allow), deny: hasRole(rule.deny) }
}

let unguessable: string | undefined

function makeUnguessable(): string {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1))
  return random.toString(36).padStart(7, 'z').slice(-5)
}

/**
 * Returns a path with an unguessable name, to request from a source in place of a denied path: the answer takes as long
 * as that for a missing path, no matter what the denied path holds.
 * The topmost closed directory is renamed, or else the last segment. So the decoy of a path in a visible directory lies
 * in the same directory. The extension of a renamed file stays, since sources judge names by it.
 * @param isClosed Whether the principal may see nothing below a directory, which ends in `/`.
 */
export function decoyOf(path: string, isClosed: (directory: string) => boolean): string {
  const segments = path.split('/')
  const last = path.endsWith('/') ? segments.length - 2 : segments.length - 1
  const closed = closedAncestor(path.replace(/\/$/, ''), isClosed)
  const at = closed === undefined ? last : closed.split('/').length - 2
  const name = segments[at] ?? ''
  const ending = at === last && !path.endsWith('/') ? (/(?<=.)\.\w{1,10}$/.exec(name)?.[0] ?? '') : ''
  unguessable ??= makeUnguessable()
  // A source also looks for other spellings of a name that is not ASCII. The decoy of such a name has an accented letter, so that it takes as long.
  const letter = mayHaveOtherSpellings(name) ? '\u00e9' : '0'
  segments[at] = `${unguessable}${shortNameHash(name)}${letter}`.padEnd(name.length - ending.length, '0') + ending
  return segments.join('/')
}

/** FNV-1a over UTF-16 units, folded to 15 bits. */
function shortNameHash(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (((hash >>> 15) ^ hash) & 0x7fff).toString(32).padStart(3, '0')
}

/**
 * Restricts what a catalog lists. It is not an access rule: resources that are not listed can still be read by their
 * URIs.
 */
export interface ListRestriction {
  /** Addresses of the mounts to list. Default all. */
  readonly mounts?: readonly string[]
  /** Globs of the paths to list. Default all. */
  readonly match?: readonly string[]
  /** Maximum number of listed resources: the most important ones, best first. Default no limit. */
  readonly most?: number
  /** Maximum number of pages of a list; derived mounts then come last. Default no limit. */
  readonly pages?: number
}

/** Returns the mounts that a restriction names, each with the globs of the restriction as a further access rule. */
export function narrowMounts<Mount extends { readonly address: string; readonly access?: Access }>(
  mounts: readonly Mount[],
  { mounts: mountNames, match }: ListRestriction,
): readonly Mount[] {
  const addresses = mountNames && new Set(mountNames.map((address) => parseAddress(address).text))
  const visibleMounts =
    addresses === undefined ? mounts : mounts.filter((mount) => addresses.has(parseAddress(mount.address).text))
  // Always add a rule, so that answers which depend on the caller are not cached for others.
  const narrow = compileAccess([{ allow: ['*'], match }])
  return visibleMounts.map((mount) => {
    const { access } = mount
    if (access === undefined) return { ...mount, access: narrow }
    const both: Access = (...args) => narrow(...args) && access(...args)
    const reach = (principal: Principal, directory: string): Reach => {
      const reaches = [narrow, access].map((rule) => rule.reach?.(principal, directory) ?? 'some')
      if (reaches.includes('none')) return 'none'
      return reaches.includes('some') ? 'some' : 'all'
    }
    return { ...mount, access: Object.assign(both, { reach }) }
  })
}
