import { describe, expect, test } from 'vitest'
import { memory } from '../../examples/memory-provider.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { invalid, notFound, ResourceError } from '../../src/core/errors.ts'
import type { Principal } from '../../src/core/provider.ts'
import { createScrubber } from '../../src/core/scrub.ts'
import type { Tool } from '../../src/core/tool.ts'
import { openViewChannel, type ServeOptions } from '../../src/server/serve.ts'
import type { AuditRecord } from '../../src/server/telemetry/audit.ts'
import { meta } from '../attack/harness/wire.ts'
import { openSchema, type SchemaRevision, schemaRevisions } from '../support/wire-schema.ts'

const catalog = createCatalog({ mounts: [{ address: 'memory://held', provider: memory({ a: 'a' }) }] })

const echo: Tool = {
  name: 'echo',
  title: 'Echo',
  description: 'Says what it is told.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  outputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  annotations: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
  call: async ({ text }, { principal }) => {
    if (text === 'wrong') throw invalid('text: It is wrong.', 'argument')
    if (text === 'gone') throw new ResourceError('unavailable', 'db-1.internal refuses')
    if (text === 'hidden') throw notFound('the id may not be seen')
    if (text === 'fault') throw new Error('a fault at /srv/app')
    return {
      text: `${principal.id}: ${String(text)}`,
      structured: { text },
      resources: [{ uri: 'memory://held/a', name: 'a' }],
    }
  },
}

const options: ServeOptions = {
  name: 'tools',
  version: '1',
  view: catalog.view,
  log: () => {},
  scrubber: createScrubber(['hunter2-hunter2']),
  tools: ({ roles }) => (roles.includes('speaker') ? [echo] : []),
}
const speaker: Principal = { id: 'ada', roles: ['speaker'] }
const listener: Principal = { id: 'bob', roles: [] }

/** Speaks a revision with a server, as one principal. */
async function open(revision: SchemaRevision, principal: Principal, given: ServeOptions = options) {
  const era = revision === '2026-07-28' ? 'modern' : 'legacy'
  const channel = await openViewChannel(given, principal, era)
  const ask = async (method: string, params: Readonly<Record<string, unknown>> = {}) => {
    const own = era === 'modern' ? { ...params, _meta: meta } : params
    return channel.request({ jsonrpc: '2.0', id: 1, method, params: own })
  }
  if (era === 'legacy') {
    await ask('initialize', { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'c', version: '1' } })
    channel.notify({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }
  return ask
}

const say = (text: string) => ({ name: 'echo', arguments: { text } })

describe.each(schemaRevisions)('tools in revision %s', (revision) => {
  test('match the schema of the revision, and have no newer fields', async () => {
    const ask = await open(revision, speaker)
    for (const closed of [false, true]) {
      const schema = openSchema(revision, { closed })
      expect(schema.faults(await ask('tools/list'), 'tools/list')).toEqual([])
      for (const text of ['hello', 'wrong'])
        expect(schema.faults(await ask('tools/call', say(text)), 'tools/call')).toEqual([])
    }
    expect(await ask('tools/list')).toMatchObject({
      result: { tools: [{ name: 'echo', description: echo.description }] },
    })
    expect(await ask('tools/call', say('hello'))).toMatchObject({
      result: { content: expect.arrayContaining([expect.objectContaining({ text: 'ada: hello' })]) },
    })
  })

  test('are absent for a caller who may use none, as if the server had none', async () => {
    const { tools: _, ...without } = options
    const [none, hidden] = [await open(revision, listener, without), await open(revision, listener)]
    for (const [method, params] of [
      ['tools/list', {}],
      ['tools/call', say('hello')],
      ['tools/call', {}],
      ['tools/call', { name: 'other' }],
    ] as const)
      expect(await hidden(method, params), method).toEqual(await none(method, params))
    expect(await hidden('tools/list')).toMatchObject({ result: { tools: [] } })
  })
})

test('the lists of tools and of prompts refuse a cursor that they did not give', async () => {
  const ask = await open('2025-11-25', speaker)
  for (const method of ['tools/list', 'prompts/list'])
    expect(await ask(method, { cursor: 'stale' }), method).toMatchObject({
      error: { code: -32602, data: { reason: 'cursor' } },
    })
})

test('tools report in a failed call what the model can correct, and no internals', async () => {
  const ask = await open('2025-11-25', speaker)
  expect(await ask('tools/call', say('wrong'))).toMatchObject({
    result: { isError: true, content: [{ type: 'text', text: 'text: It is wrong.' }] },
  })
  for (const text of ['gone', 'hidden', 'fault']) {
    const answer = JSON.stringify(await ask('tools/call', say(text)))
    expect(answer).not.toMatch(/db-1|srv|may not be seen/)
  }
  expect(await ask('tools/call', say('fault'))).toMatchObject({ error: { code: -32603, message: 'Internal error' } })
  expect(await ask('tools/call', { name: 'other' })).toMatchObject({ error: { code: -32602 } })
  expect(await ask('tools/call', { name: 'echo', arguments: [] })).toMatchObject({ error: { code: -32602 } })
  expect(JSON.stringify(await ask('tools/call', say('hunter2-hunter2')))).not.toContain('hunter2')
})

test('tools follow changes of roles at once, and each call of an allowed tool is in the audit log', async () => {
  const records: AuditRecord[] = []
  const roles: string[] = []
  const ask = await open(
    '2025-11-25',
    { id: 'eve', roles },
    { ...options, audit: (record) => void records.push(record) },
  )
  expect(await ask('tools/list')).toMatchObject({ result: { tools: [] } })
  roles.push('speaker')
  expect(await ask('tools/call', say('hello'))).toMatchObject({
    result: { content: expect.arrayContaining([expect.objectContaining({ text: 'eve: hello' })]) },
  })
  await ask('tools/call', say('wrong'))
  roles.pop()
  expect(await ask('tools/call', say('hello'))).toMatchObject({ error: { code: -32601 } })
  expect(records.filter(({ verb }) => verb === 'call')).toMatchObject([
    { principal: 'eve', verb: 'call', uri: 'echo', outcome: 'ok' },
    { principal: 'eve', verb: 'call', uri: 'echo', outcome: 'invalid' },
  ])
})

test('tools report progress without known secrets, with the token of the client', async () => {
  const telling: Tool = {
    ...echo,
    call: async (_, __, report) => {
      report?.({ progress: 1, total: 2, message: 'signed in with hunter2-hunter2' })
      return { text: 'done' }
    },
  }
  const channel = await openViewChannel({ ...options, tools: () => [telling] }, speaker, 'modern')
  const heard: unknown[] = []
  const params = { ...say('x'), _meta: { ...meta, progressToken: 'hunter2-hunter2' } }
  await channel.request(
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    { onNotification: (notification) => heard.push(notification.params) },
  )
  expect(heard).toEqual([
    { progressToken: 'hunter2-hunter2', progress: 1, total: 2, message: 'signed in with [redacted]' },
  ])
})
