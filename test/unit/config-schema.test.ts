import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { keyTables, withKeyTables } from '../../scripts/keys.ts'
import { parseDocument } from '../../src/config/document.ts'
import { configJsonSchema, formatConfigSchema } from '../../src/config/explain.ts'
import { loadConfigSchema } from '../../src/config/schema.ts'
import { sources } from '../../src/providers/index.ts'

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

interface Schema {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
}

function* objects(schema: Schema, at: string): Generator<readonly [string, Schema]> {
  if (schema.properties !== undefined) yield [at, schema]
  for (const [key, member] of Object.entries(schema.properties ?? {})) yield* objects(member, `${at}.${key}`)
  if (typeof schema.additionalProperties === 'object') yield* objects(schema.additionalProperties, `${at}.*`)
  const items = schema.items === undefined ? [] : [schema.items]
  for (const part of [...items, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) yield* objects(part, `${at}[]`)
}

test('config.schema.json is the file that "npm run schema" writes', async () => {
  expect(await read('config.schema.json')).toBe(await formatConfigSchema())
})

test('the tables of keys in docs/configuration.md are those that "npm run schema" writes', async () => {
  const page = await read('docs/configuration.md')
  expect(page).toBe(withKeyTables(page))
})

test('every key of the schema has a description, and no object accepts unknown keys', async () => {
  for (const [at, { properties = {}, additionalProperties }] of objects(await configJsonSchema(), '')) {
    // Only a source from outside knows the keys of its mounts.
    const isOutside = properties.provider !== undefined && !('const' in properties.provider)
    if (Object.keys(properties).length > 0) expect(additionalProperties, at).toBe(isOutside ? undefined : false)
    for (const [key, { description }] of Object.entries(properties)) expect(description, `${at}.${key}`).toMatch(/\.$/)
  }
})

test('a table of keys is written for every provider', () => {
  expect(Object.keys(keyTables())).toEqual(expect.arrayContaining(Object.keys(sources)))
})

test('the example in docs/configuration.md is valid', async () => {
  const [, example = ''] = /```jsonc\n(.*?)```/s.exec(await read('docs/configuration.md')) ?? []
  const { document, faults, duplicates } = parseDocument('example', example)
  expect([...faults, ...duplicates]).toEqual([])
  expect((await loadConfigSchema()).safeParse(document.value).success).toBe(true)
})
