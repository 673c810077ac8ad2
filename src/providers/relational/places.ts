import type { ObjectName } from './model.ts'
import { nameOf } from './names.ts'

/** Parsed path of a relational provider. */
export type Place =
  | { readonly kind: 'overview'; readonly schema?: string }
  | { readonly kind: 'extensions' }
  | { readonly kind: Leaf; readonly name: ObjectName; readonly key: string }
  | { readonly kind: 'row'; readonly name: ObjectName; readonly key: string; readonly row: string }

/** Possible last segments of an object's paths, in path order. */
export const leaves = ['enum', 'function', 'rows', 'schema', 'schema.sql'] as const
export type Leaf = (typeof leaves)[number]

/** Number of segments of the name of an object. */
export function depthOf(only: string | undefined): 1 | 2 {
  return only === undefined ? 2 : 1
}

/** Parses a path; `undefined` when nothing can exist there. Only the source knows whether the object exists. */
export function placeOf(path: string, only: string | undefined): Place | undefined {
  if (path === 'overview') return only === undefined ? { kind: 'overview' } : { kind: 'overview', schema: only }
  if (path === 'extensions') return { kind: 'extensions' }
  const segments = path.split('/')
  const depth = depthOf(only)
  const names = segments.slice(0, depth).map(nameOf)
  const [schema, name] = only === undefined ? names : [only, ...names]
  if (schema === undefined) return undefined
  if (segments.length === 2 && depth === 2 && segments[1] === 'overview') return { kind: 'overview', schema }
  const [leaf, row, ...rest] = segments.slice(depth)
  if (name === undefined || leaf === undefined || rest.length > 0) return undefined
  const at = { name: { schema, name }, key: `${segments.slice(0, depth).join('/')}/` }
  if (row !== undefined) return leaf === 'rows' && row !== '' ? { kind: 'row', ...at, row } : undefined
  const kind = leaves.find((one) => one === leaf)
  return kind === undefined ? undefined : { kind, ...at }
}
