import { compileGlobs, compileReach, type PathTest, type Reach } from './glob.ts'
import type { Principal } from './provider.ts'

/** Whether a principal may see a path of a mount. Applied in the catalog, and nowhere else. */
export interface Access {
  (principal: Principal, path: string): boolean
  /**
   * What the principal may see below a directory (empty, or ends in `/`), decided by the rules alone, never by what is there:
   * so that of what may not be seen the source is not even asked. Where it is left out, everything depends on the path.
   */
  readonly reach?: (principal: Principal, directory: string) => Reach
  /**
   * Principals with the same one may see the same paths, now and later. Where it is left out, what they may see can differ, and change
   * at any time.
   */
  readonly callers?: (principal: Principal) => string
}

/** One rule: it allows, or denies, roles what `match` matches; everything where it is left out. `*` is every role. */
export interface AccessRule {
  readonly allow?: readonly string[] | undefined
  readonly deny?: readonly string[] | undefined
  readonly match?: string | readonly string[] | undefined
}

/** What became of a path, and by which of the rules, from 0 up. Denied without a rule: no rule allows it. */
export type Verdict =
  | { readonly allowed: true; readonly rule: number }
  | { readonly allowed: false; readonly rule: number | undefined }

/**
 * Compiles access rules. Their order makes no difference: what any rule denies is denied, and what no rule allows is
 * denied. So an empty list shows nobody anything: whoever leaves everybody in leaves `access` out of the mount.
 *
 * A directory needs no rule of its own: it is visible where something below it is.
 *
 * @throws ResourceError `invalid` for a malformed glob.
 */
export function compileAccess(rules: readonly AccessRule[]): Access {
  const judge = compileVerdict(rules)
  const reach = compileRulesReach(rules)
  const named = [...new Set(rules.flatMap(({ allow = [], deny = [] }) => [...allow, ...deny]))].sort()
  // Only roles that a rule names make a difference.
  const callers = ({ roles }: Principal) => JSON.stringify(named.filter((role) => roles.includes(role)))
  return Object.assign((principal: Principal, path: string) => judge(principal, path).allowed, { reach, callers })
}

/** Compiles access rules into the reason for each decision: {@link compileAccess} says the same in one word. */
export function compileVerdict(rules: readonly AccessRule[]): (principal: Principal, path: string) => Verdict {
  const unnamed: Verdict = { allowed: false, rule: undefined }
  const compiled = rules.map((rule, index) => ({
    names: namesOf(rule),
    matches: rule.match === undefined ? () => true : matchEvery([rule.match].flat()),
    allowed: { allowed: true, rule: index } as const,
    denied: { allowed: false, rule: index } as const,
  }))
  return (principal, path) => {
    let allowed: Verdict = unnamed
    let denied: Verdict | undefined
    for (const rule of compiled) {
      const denies = rule.names.deny(principal)
      if ((!denies && !rule.names.allow(principal)) || !rule.matches(path)) continue
      if (denies) denied ??= rule.denied
      else if (!allowed.allowed) allowed = rule.allowed
    }
    return denied ?? allowed
  }
}

/** As `compileGlobs`, but tries every glob even once one has matched: the time does not tell which path a rule denies. */
function matchEvery(patterns: readonly string[]): PathTest {
  const tests = patterns.map((pattern) => compileGlobs([pattern]))
  return (path) => tests.filter((matches) => matches(path)).length > 0
}

function compileRulesReach(rules: readonly AccessRule[]): (principal: Principal, directory: string) => Reach {
  const compiled = rules.map((rule) => ({
    names: namesOf(rule),
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

/** Whom a rule allows, and whom it denies. */
function namesOf(rule: AccessRule) {
  const named = (names: readonly string[] | undefined) => {
    const roles = new Set(names)
    if (roles.has('*')) return () => true
    return (principal: Principal) => principal.roles.some((role) => roles.has(role))
  }
  return { allow: named(rule.allow), deny: named(rule.deny) }
}
