import { invalid } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import type { Description } from '../../core/provider.ts'

/** Metadata for the files that match. When several rules match a file, the last rule that sets a field decides it. */
export interface FileRule extends Description {
  /** One or more globs of paths. */
  readonly match: string | readonly string[]
  /** `heading`: the first Markdown heading in the file. Any other text is the title itself. */
  readonly title?: 'heading' | (string & {})
}

/** The combined facts of all rules for one file. Files with the same facts share one object. */
export interface RuleFacts {
  readonly facts: Description
  readonly heading: boolean
}

export interface Rules {
  /** Whether there are rules. */
  readonly any: boolean
  of(path: string): RuleFacts
}

/** The facts of a file that no rule matches. */
export const noFacts: Description = {}
const nothing: RuleFacts = { facts: noFacts, heading: false }

/** @throws ResourceError `invalid` for a malformed glob, or a priority that is not from 0 to 1. */
export function createRules(rules: readonly FileRule[]): Rules {
  if (rules.length === 0) return { any: false, of: () => nothing }
  const compiled = rules.map(({ match, ...facts }) => {
    if (facts.priority !== undefined && !(facts.priority >= 0 && facts.priority <= 1))
      throw invalid(`The priority of the rule for ${JSON.stringify(match)} must be from 0 to 1.`, 'rules')
    return { matches: compileGlobs(typeof match === 'string' ? [match] : match), facts }
  })
  const combined = new Map<string, RuleFacts>()
  const of = (path: string) => {
    const matching = compiled.filter(({ matches }) => matches(path))
    const key = compiled.map((rule) => (matching.includes(rule) ? '1' : '0')).join('')
    const known = combined.get(key)
    if (known !== undefined) return known
    const { title, ...facts } = Object.assign({}, ...matching.map((rule) => rule.facts)) as Description
    const heading = title === 'heading'
    const value = { facts: { ...facts, ...(title === undefined || heading ? {} : { title }) }, heading }
    combined.set(key, value)
    return value
  }
  return { any: true, of }
}
