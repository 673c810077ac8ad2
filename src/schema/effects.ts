import { lstatSync, realpathSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { errorCodeOf } from '../core/errors.ts'
import { resolveFolder, secretSourcesIn } from './values.ts'

/**
 * Something that a configuration makes hikidashi do beyond reading the folder that it lies in. A configuration that was found in the
 * current folder, and that its user has not trusted, does none of these.
 *
 * - `starts`: it starts a program.
 * - `reads`: it reads something outside the folder of the configuration.
 * - `writes`: it writes a file that the configuration names.
 * - `sends`: it connects to something, on this machine or elsewhere.
 * - `admits`: it lets others than this user ask.
 * - `needs`: it depends on a part of the configuration that was left out.
 */
export interface Effect {
  readonly kind: 'starts' | 'reads' | 'writes' | 'sends' | 'admits' | 'needs'
  /** The program, path, address or part, as the configuration writes it: text that must be escaped before it is shown. */
  readonly what: string
}

/** The folder of a configuration, and the address of the mount that is judged, if it is one. */
export interface Context {
  readonly folder: string
  readonly address: string
}

/** The rule for one option. `none`: it has no effect, whatever its value. */
type Rule<Value> = 'none' | ((value: Value, context: Context) => readonly Effect[])

/** One rule for each key of an object. A key without one is a type error, and fails test/unit/config-effects.test.ts. */
export type Rules<Values> = { readonly [Key in keyof Values]-?: Rule<NonNullable<Values[Key]>> }

/** Returns the effects of an object, key by key. A key without a rule counts as one that starts something: it fails closed. */
export function effectsBy<Values extends object>(
  rules: Rules<Values>,
  values: Values,
  context: Context,
): readonly Effect[] {
  const known: Readonly<Record<string, Rule<unknown>>> = rules as Readonly<Record<string, Rule<unknown>>>
  return Object.entries(values).flatMap(([key, value]) => {
    if (value === undefined) return []
    const rule = Object.hasOwn(known, key) ? known[key] : undefined
    if (rule === undefined) return [{ kind: 'starts' as const, what: key }]
    return rule === 'none' ? [] : rule(value, context)
  })
}

/**
 * Returns the effects of a path that is read: one if it leads out of the folder of the configuration, by its name or by a link.
 */
export function path(value: string, { folder }: Context): readonly Effect[] {
  return leadsOut(resolveFolder(value, folder), folder) ? [{ kind: 'reads', what: value }] : []
}

export function paths(values: readonly string[], context: Context): readonly Effect[] {
  return values.flatMap((value) => path(value, context))
}

/** Returns the effects of the secrets in a value, at any depth: those in a file outside the folder of the configuration. */
export function secrets(value: unknown, { folder }: Context): readonly Effect[] {
  return secretSourcesIn(value).flatMap((source) => {
    if ('env' in source) return []
    return leadsOut(resolve(folder, source.file), folder) ? [{ kind: 'reads' as const, what: source.file }] : []
  })
}

/** Returns the effects of an option that names a program. */
export function program(value: string): readonly Effect[] {
  return [{ kind: 'starts', what: value }]
}

/** Returns the effects of an option that names a service. */
export function service(value: string): readonly Effect[] {
  return [{ kind: 'sends', what: value }]
}

/** Returns the rule for a switch that lets a source reach beyond its folder: it has an effect if it is on. */
export function opens(what: string): (value: boolean) => readonly Effect[] {
  return (value) => (value ? [{ kind: 'reads', what }] : [])
}

/**
 * Whether a path is outside a folder, after all links are followed. A link without a target counts as outside, because its
 * target can be created later.
 */
export function leadsOut(target: string, folder: string): boolean {
  const real = realPath(target)
  const realFolder = realPath(folder)
  if (real === undefined || realFolder === undefined) return true
  const below = relative(realFolder, real)
  return isAbsolute(below) || below === '..' || below.startsWith(`..${sep}`)
}

/** Returns a path with all links followed. Missing names at its end stay. `undefined`: it cannot be resolved. */
function realPath(target: string): string | undefined {
  try {
    return realpathSync(target)
  } catch (error) {
    const code = errorCodeOf(error)
    if (code !== 'ENOENT' || isThere(target) || dirname(target) === target) return undefined
    const parent = realPath(dirname(target))
    return parent === undefined ? undefined : join(parent, relative(dirname(target), target))
  }
}

function isThere(target: string): boolean {
  try {
    lstatSync(target)
    return true
  } catch {
    return false
  }
}
