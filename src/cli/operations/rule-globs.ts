import { servedFolderPath } from '../../config/open-mount.ts'
import type { PlannedMount } from '../../config/plan.ts'
import { valueOr } from '../../core/errors.ts'
import { compileGlob, compileReach, type PathTest } from '../../core/glob.ts'
import { defined, memberOf } from '../../core/kit/object.ts'
import { baseName } from '../../core/path.ts'
import { decodeIfValid, parseAddress } from '../../core/uri.ts'
import { createExclusion } from '../../providers/files/index.ts'

/** A glob of a rule that matches nothing, or misses a path that it was probably meant for. */
export interface RuleMiss {
  /** The place of the rule in the configuration of the mount, such as `access[1].match`. */
  readonly rule: string
  readonly glob: string
  readonly matchesNothing: boolean
  /** The path that the glob just misses, and a glob that matches it, if one is known. */
  readonly near?: { readonly path: string; readonly glob?: string }
}

/** A file or folder (with a final `/`) of a mount. Of a folder that is not walked, the contents are not known. */
export interface SeenPath {
  readonly path: string
  readonly isWalked: boolean
}

interface RuleGlob {
  readonly rule: string
  readonly glob: string
  /** Whether a glob that matches a folder also matches the contents of the folder. */
  readonly takesFolders: boolean
  readonly matches: PathTest
}

/** Another way in which the author of a glob may have meant it. */
interface Reading {
  readonly glob?: string
  readonly matches: PathTest
  /** Whether a path that matches only this reading is a miss even if the glob matches other paths. */
  readonly isLiteral?: true
}

/** @param complete Whether the names of the mount are all given. */
export function findRuleMisses(
  planned: PlannedMount,
  names: readonly SeenPath[],
  complete: boolean,
): readonly RuleMiss[] {
  return ruleGlobs(planned).flatMap((rule) => {
    const paths = names.map(({ path }) => path).filter((path) => rule.takesFolders || !path.endsWith('/'))
    const isMatched = paths.some(rule.matches) || names.some((name) => mayMatchBelow(rule.glob, name))
    const readings = readingsOf(rule, planned).filter(({ isLiteral }) => !isMatched || isLiteral)
    const near = nearOf(rule, readings, paths)
    if (near === undefined && (isMatched || !complete)) return []
    return [{ rule: rule.rule, glob: rule.glob, matchesNothing: !isMatched && complete, ...defined({ near }) }]
  })
}

export function findNearMisses(planned: PlannedMount, path: string): readonly RuleMiss[] {
  return ruleGlobs(planned).flatMap((rule) => {
    const near = nearOf(rule, readingsOf(rule, planned), [path])
    return near === undefined ? [] : [{ rule: rule.rule, glob: rule.glob, matchesNothing: false, near }]
  })
}

export function formatRuleMiss({ rule, glob, matchesNothing, near }: RuleMiss): string {
  const subject = `${rule} ${JSON.stringify(glob)}`
  if (near === undefined) return `${subject} matches nothing`
  const remedy = near.glob === undefined ? 'write the name as it is' : `write ${JSON.stringify(near.glob)}`
  return `${subject} ${matchesNothing ? 'matches nothing, and ' : ''}just misses ${near.path}: to match it, ${remedy}`
}

export function hasRuleGlobs(planned: PlannedMount): boolean {
  return ruleGlobs(planned).length > 0
}

function ruleGlobs(planned: PlannedMount): readonly RuleGlob[] {
  const { config } = planned
  const keys = servedFolderPath(planned) === undefined ? ['access'] : Object.keys(config)
  return keys.flatMap((key) => {
    const value = memberOf(config, key)
    return (Array.isArray(value) ? value : []).flatMap((item: unknown, index): readonly RuleGlob[] => {
      const takesFolders = key === 'include' || key === 'exclude'
      if (takesFolders && typeof item === 'string')
        return [ruleGlob(`${key}[${index}]`, item, true, key === 'exclude' ? createExclusion([item]) : undefined)]
      const globs = [memberOf(item, 'match') ?? []].flat().filter((glob) => typeof glob === 'string')
      // A glob that begins with `=` is about tools or prompts.
      return globs
        .filter((glob) => !glob.startsWith('='))
        .map((glob) => ruleGlob(`${key}[${index}].match`, glob, false))
    })
  })
}

function ruleGlob(rule: string, glob: string, takesFolders: boolean, matches = compileGlob(glob)): RuleGlob {
  return { rule, glob, takesFolders, matches }
}

/** Whether a glob is about paths in a folder whose contents are not known. */
function mayMatchBelow(glob: string, { path, isWalked }: SeenPath): boolean {
  if (isWalked || !path.endsWith('/')) return false
  const reach = compileReach([glob])
  if (reach(path) !== 'some') return reach(path) === 'all'
  return reach(`${path.slice(0, -1)}\u0001/`) === 'none'
}

function nearOf({ matches }: RuleGlob, readings: readonly Reading[], paths: readonly string[]): RuleMiss['near'] {
  for (const reading of readings) {
    const path = paths.find((one) => reading.matches(one) && !matches(one))
    if (path !== undefined) return { path, ...defined({ glob: reading.glob }) }
  }
  return undefined
}

/** Returns the likeliest reading first. A text that is not a glob is left out. */
function readingsOf({ glob, takesFolders }: RuleGlob, planned: PlannedMount): readonly Reading[] {
  const readGlob = (text: string): readonly Reading[] =>
    text === glob ? [] : valueOr((): readonly Reading[] => [{ glob: text, matches: compileGlob(text) }], [], 'invalid')
  const literal = (characters: RegExp) =>
    readGlob(glob.replace(characters, '\\$&')).map((reading) => ({ ...reading, isLiteral: true as const }))
  const folder = servedFolderPath(planned)
  const roots = [parseAddress(planned.address).text, ...(folder === undefined ? [] : [folder])].map(baseName)
  return [
    ...literal(/(?<!\\)[[\]]/g),
    ...literal(/(?<!\\)[[\]{}]/g),
    ...readGlob(glob.trim()),
    ...readGlob(glob.replaceAll('\\', '/')),
    ...readGlob(decodeIfValid(glob)),
    // The rule is for files, and its glob may name a folder.
    ...(takesFolders || glob.endsWith('/') ? [] : readGlob(`${glob}/**`)),
    ...roots
      .flatMap((root) => [`${root}/`, `/${root}/`].filter((start) => glob.startsWith(start)))
      .flatMap((start) => readGlob(glob.slice(start.length))),
    ...valueOr(() => [foldedReading(glob)], [], 'invalid'),
  ]
}

/** Ignores letter case and compatibility characters (NFKC). */
function foldedReading(glob: string): Reading {
  const matches = compileGlob(glob.normalize('NFKC'), { ignoreCase: true })
  return { matches: (path) => matches(path.normalize('NFKC')) }
}
