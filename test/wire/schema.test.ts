import { beforeAll, describe, expect, test } from 'vitest'
import { isObject } from '../../src/core/kit/object.ts'
import { openSchema, schemaRevisions, type WireSchema } from '../support/wire-schema.ts'
import { type Recorded, recordSession } from '../support/wire-session.ts'

const sessions = schemaRevisions.flatMap((revision) =>
  (['stdio', 'HTTP'] as const).map((transport) => ({ revision, transport })),
)

/** What is wrong with a session: each fault with the message that has it. */
function faultsIn(recorded: readonly Recorded[], judge: WireSchema): readonly string[] {
  return recorded.flatMap(({ message, method }) =>
    judge.faults(message, method).map((fault) => `${fault} in ${JSON.stringify(message).slice(0, 400)} (${method})`),
  )
}

type Json = Readonly<Record<string, unknown>>

interface Said {
  readonly id?: unknown
  readonly method?: string
  readonly result?: Json
  readonly error?: { readonly code: number; readonly data?: unknown }
}

describe.each(sessions)('a session on $revision over $transport', ({ revision, transport }) => {
  const modern = revision === '2026-07-28'
  let recorded: readonly Recorded[] = []
  let said: readonly Said[] = []
  const resultsOf = (asked: string): readonly Json[] =>
    recorded.flatMap(({ method, message }) => {
      const { result } = message as Said
      return method === asked && result !== undefined ? [result] : []
    })

  beforeAll(async () => {
    recorded = await recordSession(revision, transport)
    said = recorded.map(({ message }) => message).filter((message) => isObject(message))
  })

  test('has messages that match the schema of the revision', () => {
    expect(faultsIn(recorded, openSchema(revision))).toEqual([])
  })

  test('has no message with a field that the revision does not know', () => {
    expect(faultsIn(recorded, openSchema(revision, { closed: true }))).toEqual([])
  })

  test('has a result of every method', () => {
    const methods = recorded.flatMap(({ method, message }) => ((message as Said).result ? [method] : []))
    expect([...new Set(methods)].sort()).toEqual(
      [
        ...(modern ? ['server/discover'] : ['initialize', 'ping']),
        'completion/complete',
        'prompts/get',
        'prompts/list',
        'resources/directory/read',
        'resources/list',
        'resources/read',
        'resources/templates/list',
        'tools/list',
      ].sort(),
    )
    expect(resultsOf('resources/list').length).toBeGreaterThan(3)
    expect(resultsOf('resources/templates/list').length).toBeGreaterThan(1)
  })

  test('has every kind of error', () => {
    const codes = new Set(said.flatMap(({ error }) => error?.code ?? []))
    const expected = [-32700, -32600, -32601, -32602, -32603]
    const ofHttp = modern && transport === 'HTTP' ? [-32020, -32022] : []
    expect([...codes].sort()).toEqual([...expected, ...ofHttp, ...(modern ? [] : [-32002])].sort())
    expect(JSON.stringify(said)).not.toContain('a secret of the driver')
  })

  test('sends progress for a long request, and nothing for a cancelled one', () => {
    expect(said.filter(({ method }) => method === 'notifications/progress').length).toBeGreaterThan(0)
    const late = resultsOf('resources/read').filter((result) => JSON.stringify(result).includes('late'))
    expect(late).toHaveLength(1)
  })

  test('answers a batch if the revision has batches', () => {
    const batches = recorded.map(({ message }) => message).filter((message) => Array.isArray(message))
    expect(batches.map((batch) => batch.length)).toEqual(revision <= '2025-03-26' ? [3] : [])
  })

  test('sends the notifications of resources of the revision', () => {
    const listed = resultsOf('resources/list').flatMap(({ resources }) => resources as readonly unknown[])
    const all = {
      uri: 'file:///rich/all.txt',
      name: 'all.txt',
      description: 'Everything that can be said of a resource',
      mimeType: 'text/plain; charset=utf-8',
      annotations: { audience: ['user', 'assistant'], priority: 0.5 },
      size: 3,
    }
    const titled = {
      title: 'All of it',
      annotations: { ...all.annotations, lastModified: '2026-07-28T00:00:00.000Z' },
      _meta: { 'dev.hikidashi/version': 'v1', 'dev.hikidashi/untrusted': ['title', 'description'] },
    }
    const pictured = { icons: [expect.objectContaining({ src: 'https://example.org/icon.png' }), expect.anything()] }
    expect(listed).toContainEqual(
      expect.objectContaining({
        ...all,
        ...(revision >= '2025-06-18' ? titled : {}),
        ...(revision >= '2025-11-25' ? pictured : {}),
      }),
    )
    const read = resultsOf('resources/read').find((result) => JSON.stringify(result).includes('"all"'))
    expect(read).toMatchObject(modern ? { resultType: 'complete', ttlMs: 1500, cacheScope: 'public' } : {})
  })
})
