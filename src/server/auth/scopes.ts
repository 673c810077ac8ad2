import { isObject } from '../protocol/messages.ts'
import type { ScopeRule } from './options.ts'

/** Returns all granted scopes: the given ones, and all that they imply, directly or indirectly. */
export function impliedBy(
  granted: Iterable<string>,
  implies: Readonly<Record<string, readonly string[]>>,
): readonly string[] {
  const all = new Set(granted)
  // The loop also visits scopes that are added during it.
  for (const scope of all)
    if (Object.hasOwn(implies, scope)) for (const narrower of implies[scope] ?? []) all.add(narrower)
  return [...all].sort()
}

/** The scopes that operations require. */
export interface Needs {
  /** Scopes that every request requires. */
  readonly always: readonly string[]
  /** Returns the scopes that a body (a message or a batch) requires in all: by its methods, and by the mounts of the URIs in it. */
  of(body: unknown): readonly string[]
}

/** Maximum number of URIs of a message that are checked. No method takes more. */
const maxUris = 1000

/** @param scopesOf Returns the scopes that a URI requires, by its mount. Whether a resource exists makes no difference. */
export function createNeeds(rules: readonly ScopeRule[], scopesOf: (uri: string) => readonly string[]): Needs {
  const always = [...new Set(rules.flatMap(({ scopes, methods }) => (methods === undefined ? scopes : [])))]
  const byMethod = (method: unknown) =>
    rules.flatMap(({ scopes, methods }) => (typeof method === 'string' && methods?.includes(method) ? scopes : []))
  const ofMessage = (message: unknown): readonly string[] => {
    if (!isObject(message)) return []
    const uris = [...urisOf(message.params)].slice(0, maxUris)
    return [...byMethod(message.method), ...uris.flatMap(scopesOf)]
  }
  return { always, of: (body) => [...new Set([...always, ...[body].flat().flatMap(ofMessage)])] }
}

/** Returns the URIs and URI templates that the params of any method name. */
function urisOf(params: unknown): ReadonlySet<string> {
  const found = new Set<string>()
  const add = (value: unknown) => typeof value === 'string' && found.add(value)
  if (!isObject(params)) return found
  add(params.uri)
  if (isObject(params.ref)) add(params.ref.uri)
  if (isObject(params.notifications)) [params.notifications.resourceSubscriptions].flat().forEach(add)
  return found
}
