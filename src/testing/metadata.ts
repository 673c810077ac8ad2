import { defined } from '../core/kit/defined.ts'
import { isPath } from '../core/path.ts'
import type { ContentFacts, Description, Entry } from '../core/provider.ts'

/** RFC 6838 section 4.2: restricted names, at most 127 characters each; then parameters as in RFC 9110. */
const mimeType =
  /^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}\/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}(?:[ \t]*;[ \t]*[\w!#$%&'*+.^`|~-]+=(?:[\w!#$%&'*+.^`|~-]+|"[^"]*"))*$/

/** The latest time that a `Date` can hold, in milliseconds. */
const lastTime = 8.64e15

type Facts = Description & Pick<Entry, 'size' | 'modified' | 'version'>

/** Returns the faults in the metadata of an entry or a template, one phrase each. */
export function metadataFaults(facts: Facts): readonly string[] {
  const faults: string[] = []
  const check = (name: keyof Facts, valid: boolean) => {
    if (facts[name] !== undefined && !valid) faults.push(`${name} is ${show(facts[name])}`)
  }
  check('size', isSize(facts.size))
  check('modified', typeof facts.modified === 'number' && Math.abs(facts.modified) <= lastTime)
  check('version', isText(facts.version))
  check('priority', typeof facts.priority === 'number' && facts.priority >= 0 && facts.priority <= 1)
  check('audience', isAudience(facts.audience))
  check('mimeType', typeof facts.mimeType === 'string' && mimeType.test(facts.mimeType))
  check('title', isText(facts.title))
  check('description', typeof facts.description === 'string' && facts.description.isWellFormed())
  check('icons', Array.isArray(facts.icons) && facts.icons.every((icon) => /^(https|data):/.test(icon.src)))
  return faults
}

/** Returns the faults in the facts of a content, one phrase each. */
export function contentFaults(facts: ContentFacts): readonly string[] {
  const { size, version, mimeType, title } = facts
  const faults = [...metadataFaults(defined({ size, version, mimeType, title }))]
  if (facts.path !== undefined && !isPath(facts.path)) faults.push(`path is ${show(facts.path)}`)
  return faults
}

/** A value as a report shows it: JSON, cut to a length that a line can hold. */
export function show(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value))
  return text.length > 120 ? `${text.slice(0, 117)}...` : text
}

/** Whether a value is a number of bytes. */
export function isSize(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.isWellFormed()
}

function isAudience(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((name) => name === 'user' || name === 'assistant') &&
    new Set(value).size === value.length
  )
}
