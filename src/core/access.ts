import { compileGlobs } from './glob.ts'
import type { Principal } from './provider.ts'

/** Whether a principal may see a path of a mount. Applied in the catalog, and nowhere else. */
export type Access = (principal: Principal, path: string) => boolean

/** One rule: it allows, or denies, roles what `match` matches; everything where it is left out. `*` is every role. */
export interface AccessRule {
  readonly allow?: readonly string[] | undefined
  readonly deny?: readonly string[] | undefined
  readonly match?: string | readonly string[] | undefined
}

/**
 * Compiles access rules. Their order makes no difference: what any rule denies is denied; what no rule allows is denied
 * once there is a rule at all; without rules everything is allowed.
 *
 * A directory needs no rule of its own: it is visible where something below it is.
 *
 * @throws ResourceError `invalid` for a malformed glob.
 */
export function compileAccess(rules: readonly AccessRule[]): Access {
  if (rules.length === 0) return () => true
  const compiled = rules.map((rule) => ({
    allow: new Set(rule.allow),
    deny: new Set(rule.deny),
    matches: rule.match === undefined ? () => true : compileGlobs([rule.match].flat()),
  }))
  const names = (roles: ReadonlySet<string>, principal: Principal) =>
    roles.has('*') || principal.roles.some((role) => roles.has(role))
  return (principal, path) => {
    let allowed = false
    for (const rule of compiled) {
      const denies = names(rule.deny, principal)
      if (!denies && (allowed || !names(rule.allow, principal))) continue
      if (!rule.matches(path)) continue
      if (denies) return false
      allowed = true
    }
    return allowed
  }
}
