import { isObject } from '../messages.ts'
import type { ScopeRule } from './options.ts'

/** Every scope that some grant: those themselves, and all that they imply, however indirectly. */
export function impliedBy(
  granted: Iterable<string>,
  implies: Readonly<Record<string, readonly string[]>>,
): readonly string[] {
  const all = new Set(granted)
  // What is added while it runs is run through too.
  for (const scope of all)
    if (Object.hasOwn(implies, scope)) for (const narrower of implies[scope] ?? []) all.add(narrower)
  return [...all].sort()
}

/** What operations need. */
export interface Needs {
  /** What every request needs. */
  readonly always: readonly string[]
  /** What a body needs, a message or a batch, in all: by its methods, and by the mounts of the URIs in it. */
  of(body: unknown): readonly string[]
}

/** So many URIs of a message are looked at. No method takes more. */
const maxUris = 1000

/** @param scopesOf What a URI needs, by its mount. Whether anything is there makes no difference. */
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

/** The URIs, and templates of URIs, that the params of any method name. */
function urisOf(params: unknown): ReadonlySet<string> {
  const found = new Set<string>()
  const add = (value: unknown) => typeof value === 'string' && found.add(value)
  if (!isObject(params)) return found
  add(params.uri)
  if (isObject(params.ref)) add(params.ref.uri)
  if (isObject(params.notifications)) [params.notifications.resourceSubscriptions].flat().forEach(add)
  return found
}
