import { type Document, isNode, parseDocument, visit } from 'yaml'
import { splitFrontMatter } from '../text/front-matter.ts'
import { deepNestingIn } from '../text/yaml-nesting.ts'

/** The name of the file that makes a directory a skill. */
export const skillFile = 'SKILL.md'

export interface SkillHeader {
  readonly name: string
  readonly description: string
  /** Everything that is written there, these two included. */
  readonly frontmatter: Readonly<Record<string, unknown>>
}

/** The longest front matter, in characters, and the deepest. */
const maxHeader = 32_768
const maxNesting = 200
/** The longest description and note on compatibility (Agent Skills specification), in characters. */
const [maxDescription, maxCompatibility] = [1024, 500]

/** The names of skills (Agent Skills specification): at most 64 lower-case letters, digits and single hyphens. */
const nameForm = /^(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/

/**
 * Reads the front matter of a `SKILL.md`, by the core schema of YAML 1.2.
 *
 * @param directory The name of the directory that the file is in, which has to be the name of the skill.
 */
export function readHeader(text: string, directory: string): SkillHeader | { readonly fault: string } {
  const { head } = splitFrontMatter(text)
  if (head === undefined) return { fault: 'it does not begin with front matter between two lines of ---' }
  if (head.length > maxHeader) return { fault: `its front matter is longer than ${maxHeader} characters` }
  const frontmatter = parseHead(head)
  if (frontmatter === undefined) return { fault: 'its front matter is no plain YAML, without tags and aliases' }
  if (!isPlain(frontmatter, 0) || typeof frontmatter !== 'object' || frontmatter === null || Array.isArray(frontmatter))
    return { fault: 'its front matter has no form in JSON' }
  const { name, description, compatibility, metadata } = frontmatter as Readonly<Record<string, unknown>>
  if (typeof name !== 'string' || !nameForm.test(name))
    return { fault: 'it has no name of lower-case letters, digits and single hyphens' }
  if (name !== directory) return { fault: 'its name is not that of its directory' }
  if (typeof description !== 'string' || description.trim() === '') return { fault: 'it has no description' }
  if (lengthOf(description) > maxDescription)
    return { fault: `its description is longer than ${maxDescription} characters` }
  if (compatibility !== undefined && !isShortText(compatibility, maxCompatibility))
    return { fault: `its "compatibility" is no text of at most ${maxCompatibility} characters` }
  if (metadata !== undefined && !isTexts(metadata)) return { fault: 'its "metadata" has values that are no texts' }
  return { name, description, frontmatter: frontmatter as Readonly<Record<string, unknown>> }
}

/** Front matter as a value. `undefined`: it is faulty, has tags or aliases, or is nested too deeply to be parsed. */
function parseHead(head: string): unknown {
  if (deepNestingIn(head, maxNesting) !== undefined) return undefined
  try {
    const document = parseDocument(head, { schema: 'core', version: '1.2', uniqueKeys: true, stringKeys: true })
    if (document.errors.length > 0 || document.warnings.length > 0 || hasTags(document)) return undefined
    return document.toJS({ maxAliasCount: 0 })
  } catch {
    return undefined
  }
}

const lengthOf = (text: string) => Array.from(text).length

const isShortText = (value: unknown, most: number) =>
  typeof value === 'string' && value !== '' && lengthOf(value) <= most

const isTexts = (value: unknown) =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((item) => typeof item === 'string')

/** Whether anything says itself of what type it is: readers of YAML do not agree on these. */
function hasTags(document: Document): boolean {
  let found = false
  visit(document, (_key, node) => {
    found ||= isNode(node) && node.tag !== undefined
    return found ? visit.BREAK : undefined
  })
  return found
}

/** Whether a value is the same once it was written as JSON. */
function isPlain(value: unknown, depth: number): boolean {
  if (depth > 32) return false
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value !== 'object' || value === null) return typeof value === 'boolean' || value === null
  if (Array.isArray(value)) return value.every((item) => isPlain(item, depth + 1))
  return Object.entries(value).every(([key, member]) => key !== '__proto__' && isPlain(member, depth + 1))
}
