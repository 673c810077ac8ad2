import { isObject } from '../core/kit/object.ts'
import type { Wire } from './wire.ts'

/** Maximum of the product of the lengths of a schema and of a value, in characters of JSON: the time of a check grows with it. */
const maxProduct = 1e9

/**
 * Returns how the structured result of a tool breaks the schema that its server declares. Undefined when it does not, or when that
 * is not checked: patterns, formats, unique items, and schemas with references are not, because their check may take any time.
 */
export async function outputFault(schema: Wire, structured: unknown): Promise<string | undefined> {
  const text = JSON.stringify(schema)
  if (/"\$(?:ref|dynamicRef|recursiveRef)"/.test(text)) return undefined
  if (text.length * JSON.stringify(structured).length > maxProduct) return undefined
  const { CfWorkerJsonSchemaValidator } = await import('@modelcontextprotocol/client/validators/cf-worker')
  try {
    const answer = new CfWorkerJsonSchemaValidator().getValidator(checkable(schema) as Wire)(structured)
    return answer.valid ? undefined : (answer.errorMessage ?? 'no reason')
  } catch {
    // The schema itself is malformed.
    return undefined
  }
}

/** Keywords whose members are schemas by name, and keywords with values that are no schemas. */
const named = new Set(['properties', '$defs', 'definitions', 'dependentSchemas'])
const values = new Set(['const', 'enum', 'default', 'examples'])
const unchecked = new Set(['pattern', 'format', 'uniqueItems', '$schema', '$id', '$anchor'])

/** Returns a schema without the keywords that are not checked. */
function checkable(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(checkable)
  if (!isObject(schema)) return schema
  const hasPatterns = 'patternProperties' in schema
  const isKept = (key: string) =>
    !unchecked.has(key) &&
    !(hasPatterns && ['patternProperties', 'additionalProperties', 'unevaluatedProperties'].includes(key))
  const kept = Object.entries(schema).filter(([key]) => isKept(key))
  return Object.fromEntries(
    kept.map(([key, value]) => {
      if (values.has(key)) return [key, value]
      if (!named.has(key) || !isObject(value)) return [key, checkable(value)]
      return [key, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, checkable(one)]))]
    }),
  )
}
