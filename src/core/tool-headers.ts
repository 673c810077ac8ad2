import { isObject, memberOf } from './kit/object.ts'
import type { JsonObject } from './tool.ts'

/**
 * A header in which an HTTP request repeats the value of a parameter of a tool, so that a gateway can route by it (`x-mcp-header`; MCP
 * 2026-07-28, basic/transports/streamable-http).
 */
export interface ParamHeader {
  /** `Mcp-Param-` and the declared name. */
  readonly header: string
  /** The keys that lead to the parameter in the arguments. */
  readonly path: readonly string[]
}

const annotation = 'x-mcp-header'
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const types: readonly unknown[] = ['string', 'integer', 'boolean']

/** Keywords whose values are schemas, or arrays of schemas, and those whose values are schemas by name. */
const schemaKeywords = [
  ...['items', 'prefixItems', 'contains', 'additionalItems', 'additionalProperties', 'unevaluatedProperties'],
  ...['unevaluatedItems', 'propertyNames', 'oneOf', 'anyOf', 'allOf', 'not', 'if', 'then', 'else', 'contentSchema'],
]
const namedKeywords = ['properties', 'patternProperties', 'dependentSchemas', 'dependencies', '$defs', 'definitions']

/** Maximum nesting depth of a schema that is searched for annotations. */
const maxDepth = 100

/** Returns the headers that the schema of a tool's arguments declares, or why the definition of the tool is invalid. */
export function paramHeadersOf(inputSchema: JsonObject): readonly ParamHeader[] | { readonly fault: string } {
  const headers: ParamHeader[] = []
  const faults: string[] = []

  const visit = (schema: unknown, path: readonly string[], isReachable: boolean, depth: number): void => {
    if (!isObject(schema) || depth > maxDepth) return
    if (Object.hasOwn(schema, annotation)) {
      const { [annotation]: name, type } = schema
      const header = `Mcp-Param-${String(name)}`
      const isTaken = headers.some((one) => one.header.toLowerCase() === header.toLowerCase())
      if (!isReachable || path.length === 0) faults.push('a header is declared where no argument has a fixed place')
      else if (typeof name !== 'string' || !token.test(name)) faults.push('the name of a header is invalid')
      else if (!types.includes(type)) faults.push(`the header ${name} belongs to no string, integer or boolean`)
      else if (isTaken) faults.push(`the header ${name} is declared twice`)
      else headers.push({ header, path })
    }
    for (const keyword of namedKeywords) {
      const members = schema[keyword]
      if (!isObject(members)) continue
      const isFixed = isReachable && keyword === 'properties'
      for (const [key, one] of Object.entries(members)) visit(one, [...path, key], isFixed, depth + 1)
    }
    for (const keyword of schemaKeywords) for (const one of [schema[keyword]].flat()) visit(one, path, false, depth + 1)
  }

  visit(inputSchema, [], true, 0)
  const [fault] = faults
  return fault === undefined ? headers : { fault }
}

/** Returns the argument that a header repeats. Undefined if it is missing, or is an object, an array or null. */
export function paramIn(args: JsonObject, { path }: ParamHeader): string | number | boolean | undefined {
  const value = path.reduce<unknown>(memberOf, args)
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : undefined
}

export function headersOfCall(declared: readonly ParamHeader[], args: JsonObject): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  for (const param of declared) {
    const value = paramIn(args, param)
    if (value !== undefined) headers[param.header] = encodeHeaderValue(String(value))
  }
  return headers
}

/** Encodes a text for a header: one that a header cannot hold as it is becomes base64 between `=?base64?` and `?=`. */
function encodeHeaderValue(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)
  return isPlain ? text : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`
}
