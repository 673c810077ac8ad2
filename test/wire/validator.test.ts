import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { metaFaults, openSchema, type SchemaRevision, schemaRevisions } from '../support/wire-schema.ts'

type Json = Record<string, unknown>

const examples = new URL('../data/mcp-schema/examples-2026-07-28/', import.meta.url)

/** Messages that are right on a revision, each to be made wrong in one place. */
function rightOn(revision: SchemaRevision) {
  const modern = revision === '2026-07-28'
  const cacheable = modern ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {}
  const answer = (result: Json) => ({ jsonrpc: '2.0', id: 1, result }) as Json
  const resource = {
    uri: 'file:///a',
    name: 'a',
    mimeType: 'text/plain',
    size: 1,
    annotations: { audience: ['user'], priority: 1 },
  } as Json
  return {
    resource,
    list: answer({ resources: [resource], nextCursor: 'c', ...cacheable }),
    templates: answer({ resourceTemplates: [{ uriTemplate: 'file:///{+path}', name: 'a' }], ...cacheable }),
    read: answer({ contents: [{ uri: 'file:///a', text: 'a' }], ...cacheable }),
    complete: answer({ completion: { values: ['a'], total: 1 }, ...(modern ? { resultType: 'complete' } : {}) }),
    error: { jsonrpc: '2.0', id: 1, error: { code: -32601, message: 'Method not found' } } as Json,
    progress: {
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: 1, progress: 1 },
    } as Json,
  }
}

/** The message with one member set, deep inside; `undefined` takes it away. */
function altered(message: Json, path: readonly (string | number)[], value: unknown): Json {
  const copy = structuredClone(message)
  let place = copy as Record<string | number, unknown>
  for (const step of path.slice(0, -1)) place = place[step] as Record<string | number, unknown>
  const last = path.at(-1) ?? ''
  if (value === undefined) delete place[last]
  else place[last] = value
  return copy
}

type Kind = Exclude<keyof ReturnType<typeof rightOn>, 'resource'>

const methods: Readonly<Record<Kind, string | undefined>> = {
  list: 'resources/list',
  templates: 'resources/templates/list',
  read: 'resources/read',
  complete: 'completion/complete',
  error: 'anything',
  progress: undefined,
}

describe.each(schemaRevisions)('the schema validator of %s', (revision) => {
  const right = rightOn(revision)
  const open = openSchema(revision)
  const closed = openSchema(revision, { closed: true })

  test('has a valid schema', () => {
    expect(metaFaults(revision)).toEqual([])
  })

  test.each(Object.keys(methods) as Kind[])('accepts a valid message: %s', (kind) => {
    expect(open.faults(right[kind], methods[kind])).toEqual([])
    expect(closed.faults(right[kind], methods[kind])).toEqual([])
  })

  const wrong: readonly (readonly [kind: Kind, path: readonly (string | number)[], value: unknown])[] = [
    ['list', ['jsonrpc'], '1.0'],
    ['list', ['id'], undefined],
    ['list', ['id'], null],
    ['list', ['result', 'resources'], undefined],
    ['list', ['result', 'resources', 0, 'uri'], undefined],
    ['list', ['result', 'resources', 0, 'uri'], 'no uri'],
    ['list', ['result', 'resources', 0, 'name'], undefined],
    ['list', ['result', 'resources', 0, 'size'], '1'],
    ['list', ['result', 'resources', 0, 'annotations', 'priority'], 2],
    ['list', ['result', 'resources', 0, 'annotations', 'audience'], ['nobody']],
    ['list', ['result', 'nextCursor'], 7],
    ['templates', ['result', 'resourceTemplates', 0, 'uriTemplate'], undefined],
    ['templates', ['result', 'resourceTemplates', 0, 'uriTemplate'], 'file:///{'],
    ['read', ['result', 'contents'], undefined],
    ['read', ['result', 'contents', 0, 'text'], undefined],
    ['complete', ['result', 'completion', 'values'], [1]],
    ['error', ['error', 'code'], 'x'],
    ['error', ['error', 'message'], undefined],
    ['error', ['id'], null],
    ['progress', ['params', 'progressToken'], undefined],
    ['progress', ['method'], 'notifications/unheard/of'],
    ['progress', ['id'], 1],
    ...(revision === '2026-07-28'
      ? ([
          ['list', ['result', 'ttlMs'], undefined],
          ['list', ['result', 'cacheScope'], 'everybody'],
          ['read', ['result', 'ttlMs'], -1],
          ['read', ['result', 'resultType'], undefined],
        ] as const)
      : []),
  ]

  test.each(wrong)('rejects an invalid message: %s, %j is %j', (kind, path, value) => {
    expect(open.faults(altered(right[kind], path, value), methods[kind])).not.toEqual([])
  })

  const younger: readonly (readonly [
    since: SchemaRevision,
    kind: Kind,
    path: readonly (string | number)[],
    value: unknown,
  ])[] = [
    ['2025-06-18', 'list', ['result', 'resources', 0, 'title'], 'A'],
    ['2025-06-18', 'list', ['result', 'resources', 0, 'annotations', 'lastModified'], '2026-07-28T00:00:00Z'],
    ['2025-06-18', 'list', ['result', 'resources', 0, '_meta'], {}],
    ['2025-11-25', 'list', ['result', 'resources', 0, 'icons'], [{ src: 'https://example.org/i.png' }]],
    ['2025-11-25', 'templates', ['result', 'resourceTemplates', 0, 'icons'], []],
    ['2026-07-28', 'list', ['result', 'ttlMs'], 0],
    ['2026-07-28', 'read', ['result', 'resultType'], 'complete'],
    ['2025-03-26', 'progress', ['params', 'message'], 'at work'],
  ]

  test.each(younger)(
    'in strict mode accepts a field of %s only from that revision on: %s, %j',
    (since, kind, path, value) => {
      const faults = closed.faults(altered(right[kind], path, value), methods[kind])
      if (revision >= since) expect(faults).toEqual([])
      else expect(faults).not.toEqual([])
    },
  )

  test('in strict mode allows name and title of contents on 2025-06-18 only', () => {
    for (const member of ['name', 'title']) {
      const faults = closed.faults(altered(right.read, ['result', 'contents', 0, member], 'a'), methods.read)
      if (revision === '2025-06-18') expect(faults).toEqual([])
      else expect(faults).not.toEqual([])
    }
  })

  test('checks an answer against the schema of its request, and rejects an answer without a request', () => {
    expect(open.faults(right.list, 'resources/read')).not.toEqual([])
    expect(open.faults(right.list, undefined)).not.toEqual([])
    expect(open.faults(right.list, 'resources/directory/read')).toEqual([])
  })

  test('accepts the id null only for an error about an unreadable message', () => {
    const unread = altered(altered(right.error, ['id'], null), ['error', 'code'], -32700)
    expect(open.faults(unread, undefined)).toEqual([])
    expect(open.faults(altered(unread, ['error', 'code'], -32602), undefined)).not.toEqual([])
  })
})

describe('the official examples of 2026-07-28', () => {
  const schema = openSchema('2026-07-28')
  const all = readdirSync(examples).flatMap((definition) =>
    readdirSync(new URL(`${definition}/`, examples)).map((file) => [definition, file] as const),
  )

  test('are 50 in number, so that none is skipped', () => {
    expect(all.length).toBe(50)
  })

  test.each(all)('%s/%s matches its definition, and not that of another result', (definition, file) => {
    const value = JSON.parse(readFileSync(new URL(`${definition}/${file}`, examples), 'utf8')) as unknown
    expect(schema.check(definition, value)).toEqual([])
    // The same example is no other thing.
    expect(schema.check('ListRootsResult', value)).not.toEqual([])
  })
})
