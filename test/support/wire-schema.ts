import { readFileSync } from 'node:fs'
import { Ajv, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { isObject } from '../../src/core/kit/object.ts'

/** The revisions that have a schema. */
export const schemaRevisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const

export type SchemaRevision = (typeof schemaRevisions)[number]

/** The schema of one revision, which validates the messages of a server. */
export interface WireSchema {
  /**
   * Returns the faults of a message.
   * @param method The method of the answered request, if there is one.
   */
  faults(message: unknown, method: string | undefined): readonly string[]
  /** Returns the faults of a value under a definition of the schema. */
  check(definition: string, value: unknown): readonly string[]
}

type Schema = Record<string, unknown>

/**
 * Opens the schema of a revision. `closed`: objects may hold only members of the revision, so that newer ones are found.
 * Exceptions: `_meta`, objects that the schema leaves open, and `name` and `title` of contents in 2025-06-18, which the page of
 * the specification shows, though the schema lacks them.
 */
export function openSchema(revision: SchemaRevision, { closed = false } = {}): WireSchema {
  const key = `${revision} ${closed}`
  const schema = opened.get(key) ?? makeSchema(revision, closed)
  opened.set(key, schema)
  return schema
}

/** Returns the faults of the schema of a revision itself. */
export function metaFaults(revision: SchemaRevision): readonly string[] {
  const root = readSchema(revision)
  const ajv = new ('$defs' in root ? Ajv2020 : Ajv)({ strict: false, allErrors: true })
  formats.default(ajv)
  return ajv.validateSchema(root) === true ? [] : [ajv.errorsText(ajv.errors)]
}

/** Compiled once for all files that share a process. */
const opened = new Map<string, WireSchema>()

function makeSchema(revision: SchemaRevision, closed: boolean): WireSchema {
  const root = readSchema(revision)
  const key = '$defs' in root ? '$defs' : 'definitions'
  const definitions = root[key] as Record<string, Schema>
  if (closed) closeAll(definitions, revision)
  // `metaFaults` checks the schema itself in a separate test, because compiling the meta-schema takes longest.
  const ajv = new (key === '$defs' ? Ajv2020 : Ajv)({ strict: false, allErrors: true, validateSchema: false })
  formats.default(ajv)
  ajv.addSchema(root, 'mcp')
  const validators = new Map<string, ValidateFunction>()

  const check: WireSchema['check'] = (definition, value) => {
    if (!(definition in definitions)) return [`${revision} has no ${definition}`]
    let validate = validators.get(definition)
    validate ??= ajv.compile({ $ref: `mcp#/${key}/${definition}` })
    validators.set(definition, validate)
    if (validate(value)) return []
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${definition}${instancePath}: ${message} ${JSON.stringify(params)}`,
    )
  }
  const named = namesOf(definitions)

  const faults: WireSchema['faults'] = (message, method) => {
    if (Array.isArray(message)) {
      // The methods of the answers are unknown here, so the caller checks the parts. JSON-RPC 2.0, and so 2024-11-05, has batches;
      // only the schema of 2024-11-05 lacks them.
      return revision === '2024-11-05' ? [] : check('JSONRPCBatchResponse', message)
    }
    if (!isObject(message)) return ['it is no object']
    const whole = check('JSONRPCMessage', hasNullId(message) ? withoutNullId(message, definitions) : message)
    if ('method' in message) {
      if ('id' in message) return ['a server asks nothing']
      const definition = named.notifications.get(String(message.method))
      return definition === undefined
        ? [`unknown notification ${message.method}`]
        : [...whole, ...check(definition, message)]
    }
    if ('error' in message) return [...whole, ...errorFaults(message)]
    const definition = method === undefined ? undefined : (named.results.get(method) ?? extensions.get(method))
    return definition === undefined
      ? [`it answers ${method ?? 'nothing'}`]
      : [...whole, ...check(definition, message.result)]
  }

  const errorFaults = (message: Schema): readonly string[] => {
    const { error } = message
    const definition = isObject(error) ? named.errors.get(Number(error.code)) : undefined
    if (definition === undefined) return []
    return check(definition, 'error' in ((definitions[definition]?.properties ?? {}) as Schema) ? message : error)
  }

  return { check, faults }
}

/** Methods of extensions whose results equal that of a method of the schema. */
const extensions = new Map([['resources/directory/read', 'ListResourcesResult']])

/** Methods whose results have no members of their own. */
const empty = new Map(['ping', 'resources/subscribe', 'resources/unsubscribe'].map((method) => [method, 'EmptyResult']))

interface Names {
  /** Definitions of results, by method of the request. */
  readonly results: ReadonlyMap<string, string>
  /** Definitions of notifications, by method. */
  readonly notifications: ReadonlyMap<string, string>
  /** Definitions of errors, by code. Only the newest revision has them. */
  readonly errors: ReadonlyMap<number, string>
}

function namesOf(definitions: Readonly<Record<string, Schema>>): Names {
  const results = new Map<string, string>()
  const notifications = new Map<string, string>()
  const errors = new Map<number, string>()
  for (const [name, schema] of Object.entries(definitions)) {
    const method = constant(schema, 'method')
    if (typeof method === 'string' && name.endsWith('Request')) {
      const result = empty.get(method) ?? name.replace(/Request$/, 'Result')
      if (result in definitions) results.set(method, result)
    }
    if (typeof method === 'string' && name.endsWith('Notification')) notifications.set(method, name)
    const code = constant(schema, 'code') ?? nestedCode(schema)
    if (typeof code === 'number') errors.set(code, name)
  }
  return { results, notifications, errors }
}

function constant(schema: unknown, property: string): unknown {
  const properties = isObject(schema) ? schema.properties : undefined
  const found = isObject(properties) ? properties[property] : undefined
  return isObject(found) ? found.const : undefined
}

/** Returns the code of an error that is defined as a whole message. */
function nestedCode(schema: Schema): unknown {
  const { error } = (schema.properties ?? {}) as Schema
  const parts = isObject(error) && Array.isArray(error.allOf) ? (error.allOf as readonly unknown[]) : []
  return parts.map((part) => constant(part, 'code')).find((code) => code !== undefined)
}

function readSchema(revision: SchemaRevision): Schema {
  const url = new URL(`../data/mcp-schema/${revision}.json`, import.meta.url)
  return JSON.parse(readFileSync(url, 'utf8')) as Schema
}

/**
 * Whether an error has the id `null`, as JSON-RPC 2.0 (section 5) requires if the id of the request could not be read. The
 * schemas of MCP do not allow it.
 */
function hasNullId(message: Schema): boolean {
  const { id, error } = message
  return id === null && isObject(error) && (error.code === -32700 || error.code === -32600)
}

function withoutNullId({ id: _, ...message }: Schema, definitions: Readonly<Record<string, Schema>>): Schema {
  return 'JSONRPCErrorResponse' in definitions ? message : { ...message, id: 0 }
}

function closeAll(definitions: Record<string, Schema>, revision: SchemaRevision): void {
  // The base of other results stays open; the empty result is closed.
  if (definitions.Result !== undefined) definitions.EmptyResult = { ...definitions.Result, additionalProperties: false }
  for (const [name, schema] of Object.entries(definitions)) {
    if (name.endsWith('MetaObject')) continue
    close(schema)
    const properties = schema.properties as Schema | undefined
    // The older schemas lack `jsonrpc` in requests and notifications, which have it.
    if (properties !== undefined && constant(schema, 'method') !== undefined) properties.jsonrpc ??= { const: '2.0' }
    // The SDK sends and reads declarations of extensions (SEP-2133) here on this revision too.
    if (revision === '2025-11-25' && name === 'ServerCapabilities')
      Object.assign(properties ?? {}, { extensions: { type: 'object' } })
    if (revision === '2025-06-18' && /^(?:Text|Blob)ResourceContents$/.test(name))
      Object.assign(properties ?? {}, { name: { type: 'string' }, title: { type: 'string' } })
  }
}

function close(schema: unknown): void {
  if (Array.isArray(schema)) for (const part of schema) close(part)
  if (!isObject(schema)) return
  const { properties } = schema
  if (isObject(properties)) {
    if (!('additionalProperties' in schema)) Object.assign(schema, { additionalProperties: false })
    for (const [name, property] of Object.entries(properties)) if (name !== '_meta') close(property)
  }
  // Members of `allOf` describe the same object, so closing them would make them exclude each other.
  for (const keyword of ['items', 'anyOf', 'oneOf', 'additionalProperties']) close(schema[keyword])
}
