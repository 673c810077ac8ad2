import { readFileSync } from 'node:fs'
import { Ajv, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { isObject } from '../../src/core/kit/object.ts'

/** The revisions that have a schema. */
export const schemaRevisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const

export type SchemaRevision = (typeof schemaRevisions)[number]

/** The schema of one revision, as the judge of what a server says. */
export interface WireSchema {
  /** What is wrong with a message. @param method The method of the request that it answers, if it answers one. */
  faults(message: unknown, method: string | undefined): readonly string[]
  /** What is wrong with a value, as one definition of the schema has it. */
  check(definition: string, value: unknown): readonly string[]
}

type Schema = Record<string, unknown>

/**
 * Opens the schema of a revision. `closed`: objects may hold only what the revision names, so that a field which came
 * later is found. Open stay `_meta`, what the schema itself leaves open, and `name` and `title` of contents in 2025-06-18:
 * the specification's page shows them there, though the schema does not name them.
 */
export function openSchema(revision: SchemaRevision, { closed = false } = {}): WireSchema {
  const key = `${revision} ${closed}`
  const schema = opened.get(key) ?? makeSchema(revision, closed)
  opened.set(key, schema)
  return schema
}

/** What is wrong with the schema of a revision itself, as the schema of schemas has it. */
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
  // That it is a schema is a test of its own (`metaFaults`): to compile the schema of schemas takes longer than all the rest.
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
      // The method of each answer is not known here: the parts are judged by the caller. JSON-RPC 2.0 has had batches all
      // along, and 2024-11-05 is JSON-RPC 2.0; only its schema does not name them.
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

/** Methods of extensions, and the results that they share with a method of the schema. */
const extensions = new Map([['resources/directory/read', 'ListResourcesResult']])

/** Results without members of their own. */
const empty = new Map(['ping', 'resources/subscribe', 'resources/unsubscribe'].map((method) => [method, 'EmptyResult']))

interface Names {
  /** By method of the request. */
  readonly results: ReadonlyMap<string, string>
  /** By method of the notification. */
  readonly notifications: ReadonlyMap<string, string>
  /** By code. The newest revision has definitions of single errors. */
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

/** The code of an error that is defined as a whole message. */
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
 * JSON-RPC 2.0 (section 5) gives an error the id `null` when the id of the request could not be read. No schema of MCP
 * names that: the older ones want an id, the later ones let it be left out.
 */
function hasNullId(message: Schema): boolean {
  const { id, error } = message
  return id === null && isObject(error) && (error.code === -32700 || error.code === -32600)
}

function withoutNullId({ id: _, ...message }: Schema, definitions: Readonly<Record<string, Schema>>): Schema {
  return 'JSONRPCErrorResponse' in definitions ? message : { ...message, id: 0 }
}

function closeAll(definitions: Record<string, Schema>, revision: SchemaRevision): void {
  // As a base of other results it stays open; as a result of its own it is closed.
  if (definitions.Result !== undefined) definitions.EmptyResult = { ...definitions.Result, additionalProperties: false }
  for (const [name, schema] of Object.entries(definitions)) {
    if (name.endsWith('MetaObject')) continue
    close(schema)
    const properties = schema.properties as Schema | undefined
    // The older schemas leave it out of requests and notifications, which have it all the same.
    if (properties !== undefined && constant(schema, 'method') !== undefined) properties.jsonrpc ??= { const: '2.0' }
    // Declarations of extensions (SEP-2133) go there on this revision too, as the SDK sends and reads them.
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
  // What is under `allOf` describes the same object as its neighbours: closed, they would exclude each other.
  for (const keyword of ['items', 'anyOf', 'oneOf', 'additionalProperties']) close(schema[keyword])
}
