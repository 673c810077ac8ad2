import { isDeeperThan, isObject } from '../core/kit/object.ts'
import type { WireObject } from './wire.ts'

/** Maximum of the product of the lengths of a schema and of a value, in characters of JSON. */
const maxProduct = 1e9
/** Maximum time of a check. References may apply parts of a schema to one value any number of times. */
const maxCheckMs = 1000
/** Maximum depth of a value: an error of the validator repeats the path at each level, so its length grows with the square of the depth. */
const maxDepth = 200

/**
 * Returns how the structured result of a tool breaks the schema that its server declares. Undefined when no violation is found. Patterns,
 * unique items and dynamic references are not checked, because their check may take any time, nor are formats. Nothing is checked if the
 * value is too deep, both are too long, a reference leads out of the schema or to itself, or the check takes too long.
 */
export async function findOutputViolation(schema: WireObject, structured: unknown): Promise<string | undefined> {
  if (isDeeperThan(maxDepth, structured)) return undefined
  if (JSON.stringify(schema).length * JSON.stringify(structured).length > maxProduct) return undefined
  const { CfWorkerJsonSchemaValidator } = await import('@modelcontextprotocol/client/validators/cf-worker')
  const endsAt = performance.now() + maxCheckMs
  const visit = () => {
    if (performance.now() > endsAt) throw new Error('The check takes too long.')
  }
  try {
    const schemaToCheck = checkable(schema, { visit, isWhole: !isUncheckedInPart(schema) }) as WireObject
    const answer = new CfWorkerJsonSchemaValidator().getValidator(schemaToCheck)(structured)
    if (answer.valid) return undefined
    // The last error is the innermost one: `#/sum: Instance type "string" is invalid.`
    return answer.errorMessage?.split(/(?:^|; )#/).at(-1) ?? 'no reason'
  } catch {
    // The schema is malformed, has a reference that leads nowhere or to itself, or the check takes too long.
    return undefined
  }
}

/** Keywords whose members are schemas by name. */
const keywords = new Set(['properties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])
/** Keywords with values that are not schemas. */
const values = new Set(['const', 'enum', 'default', 'examples'])
/** Keywords that are not checked, because a check of them may take any time. */
const unchecked = new Set(['pattern', 'patternProperties', 'uniqueItems', '$dynamicRef', '$recursiveRef'])
/** Keywords that can refuse a valid value when a schema in them, or beside them, is checked only in part. */
const inverse = new Set(['not', 'if', 'then', 'else', 'maxContains', 'unevaluatedItems', 'unevaluatedProperties'])

/** Whether a schema has, at any depth, a keyword that is not checked. */
function isUncheckedInPart(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(isUncheckedInPart)
  if (!isObject(schema)) return false
  return Object.entries(schema).some(([key, value]) => {
    if (unchecked.has(key)) return true
    if (values.has(key)) return false
    return keywords.has(key) && isObject(value)
      ? Object.values(value).some(isUncheckedInPart)
      : isUncheckedInPart(value)
  })
}

interface Checking {
  /** Called each time that a part of the schema is applied to a value. */
  readonly visit: () => void
  readonly isWhole: boolean
}

/** Copies a schema without the keywords that are not checked, and without the keywords whose meaning depends on them. */
function checkable(schema: unknown, checking: Checking): unknown {
  if (Array.isArray(schema)) return schema.map((item) => checkable(item, checking))
  if (!isObject(schema)) return schema
  const { $ref, format: _, ...rest } = schema
  const isLeftOut = (key: string) =>
    unchecked.has(key) ||
    (!checking.isWhole && inverse.has(key)) ||
    ('patternProperties' in schema && key === 'additionalProperties') ||
    (!checking.isWhole && key === 'oneOf' && 'anyOf' in schema)
  const copy = Object.fromEntries(
    Object.entries(rest)
      .filter(([key]) => !isLeftOut(key))
      .map(([key, value]) => {
        if (values.has(key)) return [key, value]
        if (keywords.has(key) && isObject(value)) {
          const schemas = Object.entries(value).map(([name, one]) => [name, checkable(one, checking)])
          return [key, Object.fromEntries(schemas)]
        }
        // Without the unchecked keywords, more than one of several forms may match.
        return [key === 'oneOf' && !checking.isWhole ? 'anyOf' : key, checkable(value, checking)]
      }),
  )
  // The validator looks for a reference each time that it applies the schema.
  return Object.defineProperty(copy, '$ref', {
    get: () => {
      checking.visit()
      return $ref
    },
  })
}
