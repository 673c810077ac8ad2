import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { connect } from '../../src/client/index.ts'
import type { View, ViewChange } from '../../src/core/view.ts'
import { main, type Running, start } from '../support/cli.ts'
import { type EraClient, type EraNotification, eras, type Place } from '../support/era-clients.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { someOf } from '../support/volume.ts'

// Each client starts a process. These tests wait long rather than fail where the machine is busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })
const patience = 60_000

const review = `---
title: Review a document
description: Reads one document closely.
arguments:
  - { name: path, description: Which document, required: true, complete: "docs://notes/{+path}" }
  - { name: depth, values: [quick, deep] }
---
Review this ({{depth}}):

![[docs://notes/{{path}}]]

{{role "assistant"}}
I have read it.
`

let folder: Folder
let server: Running
const places = new Map<string, Place>()

beforeAll(async () => {
  folder = createFolder()
  const mounts = {
    'zed://prompt-library': {
      provider: 'prompts',
      root: 'prompts',
      access: [{ allow: ['*'] }, { deny: ['*'], match: 'hidden.md' }],
      redact: 'mask',
    },
    'docs://notes': {
      provider: 'files',
      root: 'notes',
      access: [{ allow: ['*'] }, { deny: ['*'], match: 'private.md' }],
    },
  }
  folder.write({
    'hikidashi.json': JSON.stringify({ mounts, http: { sse: true } }),
    'prompts/README.md': '# The library\n',
    'prompts/review.md': review,
    'prompts/hidden.md': 'Hidden.\n',
    'prompts/key.md': `Use ghp_${'a1B2c3D4e5'.repeat(4).slice(0, 36)} for it.\n`,
    'prompts/broken.md': '---\narguments: 7\n---\nBroken.\n',
    'notes/plan.md': '# The plan\n',
    'notes/private.md': '# Private\n',
  })
  server = start(['serve', '--config', 'hikidashi.json', '--http', '0'], { cwd: folder.root })
  const [, url = ''] = await server.says(/at (http:\/\/127\.0\.0\.1:\d+\/mcp)\n/)
  const args = [main, 'serve', '--config', folder.at('hikidashi.json'), '--stdio', '--log-level', 'error']
  places.set('HTTP', { url })
  places.set('stdio', { command: process.execPath, args })
})

afterAll(async () => {
  server.child.kill('SIGTERM')
  await server.ended
  folder.remove()
})

const placeOf = (transport: string): Place => places.get(transport) ?? expect.fail(transport)
const transports = ['stdio', 'HTTP'] as const

const embedded = { type: 'resource', resource: { uri: 'docs://notes/plan.md', text: '# The plan\n' } }

// The oldest, the newest before 2026-07-28, and that one: the wire tests have every revision.
const some = eras.filter(({ revision }, index) => index === 0 || index === 3 || revision === '2026-07-28')

describe.each(some)('the client $name', (era) => {
  describe.each(someOf(`prompts ${era.name}`, transports))('over %s', (transport) => {
    let client: EraClient
    const modern = era.revision === '2026-07-28'
    const heard: EraNotification[] = []
    beforeAll(async () => {
      client = (await era.connect(placeOf(transport))).client
      client.fallbackNotificationHandler = async (notification) => void heard.push(notification)
    })
    afterAll(() => client?.close())

    test('lists the prompts that the caller may see', async () => {
      const { prompts } = await client.listPrompts()
      expect(prompts.map(({ name }) => name)).toEqual(['key', 'review', 'assemble_context'])
      expect(prompts[1]).toMatchObject({
        description: 'Reads one document closely.',
        arguments: [{ name: 'path', description: 'Which document', required: true }, { name: 'depth' }],
        ...(era.revision >= '2025-06-18' ? { title: 'Review a document' } : {}),
      })
      expect(JSON.stringify(prompts)).not.toContain('docs://')
    })

    test('gets a prompt, with the resource that it names', async () => {
      const { messages } = await client.getPrompt({ name: 'review', arguments: { path: 'plan.md', depth: '{{path}}' } })
      expect(messages).toMatchObject([
        { role: 'user', content: { type: 'text', text: 'Review this ({{path}}):' } },
        { role: 'user', content: embedded },
        { role: 'assistant', content: { type: 'text', text: 'I have read it.' } },
      ])
      expect(JSON.stringify(await client.getPrompt({ name: 'key' }))).toContain('Use [redacted] for it.')
    })

    test('gets an error that names a missing argument, and the same error for a hidden prompt or resource as for an absent one', async () => {
      const refused = async (name: string, given?: Readonly<Record<string, string>>) => {
        const asked = client.getPrompt(given === undefined ? { name } : { name, arguments: given })
        return asked.then(
          () => expect.fail('it was answered'),
          (error: { code?: number; message: string; data?: unknown }) => [error.code, error.message, error.data],
        )
      }
      expect(await refused('review')).toMatchObject([-32602, expect.stringContaining('"path" is missing'), {}])
      expect(await refused('hidden')).toEqual(await refused('absent'))
      const [, , absent] = await refused('review', { path: 'absent.md' })
      const [code, message, hidden] = await refused('review', { path: 'private.md' })
      expect([code, message]).toEqual([-32602, expect.stringContaining('does not exist')])
      expect(hidden).toEqual({ reason: 'argument', uri: 'docs://notes/private.md' })
      expect(absent).toEqual({ reason: 'argument', uri: 'docs://notes/absent.md' })
    })

    test('completes arguments, from values and from visible resources', async () => {
      const complete = async (name: string, value: string) =>
        (await client.complete({ ref: { type: 'ref/prompt', name: 'review' }, argument: { name, value } })).completion
      expect(await complete('depth', 'd')).toEqual({ values: ['deep'], total: 1, hasMore: false })
      expect((await complete('path', 'p')).values).toEqual(['plan.md'])
    })

    test('is notified when a prompt changes', async () => {
      const stream = modern ? await client.listen?.({ promptsListChanged: true }) : undefined
      // Before 2026-07-28 nobody says when it is listened to: something changes until it is heard.
      let count = 0
      await vi.waitFor(
        () => {
          writeFileSync(folder.at('prompts/hidden.md'), `${++count}\n`)
          if (!heard.some(({ method }) => method === 'notifications/prompts/list_changed'))
            writeFileSync(folder.at('prompts/key.md'), `${count} ${review.length}\n`)
          expect(heard.map(({ method }) => method)).toContain('notifications/prompts/list_changed')
        },
        { timeout: patience, interval: 500 },
      )
      await stream?.close()
      writeFileSync(folder.at('prompts/key.md'), `Use ghp_${'a1B2c3D4e5'.repeat(4).slice(0, 36)} for it.\n`)
    })
  })
})

describe.each(transports)('the client of hikidashi over %s', (transport) => {
  let view: View
  beforeAll(async () => {
    view = await connect(placeOf(transport))
  })
  afterAll(() => view?.close?.())

  test('lists, fills in and completes the prompts that the server offers, and passes on its errors', async () => {
    const { prompts } = view
    if (prompts === undefined) throw new Error('there are no prompts')
    const { items } = await prompts.list()
    expect(items.filter(({ name }) => !/^new-|^assemble_context$/.test(name))).toEqual([
      { name: 'key' },
      {
        name: 'review',
        title: 'Review a document',
        description: 'Reads one document closely.',
        arguments: [{ name: 'path', description: 'Which document', required: true }, { name: 'depth' }],
        meta: { 'dev.hikidashi/untrusted': ['title', 'description'] },
      },
    ])
    const filled = await prompts.get({ name: 'review', arguments: new Map([['path', 'plan.md']]) })
    expect(filled.messages.map(({ content }) => content)).toMatchObject([
      { text: 'Review this ():' },
      { resource: { uri: 'docs://notes/plan.md', text: '# The plan\n' } },
      { text: 'I have read it.' },
    ])
    expect((await prompts.complete({ name: 'review', argument: { name: 'path', value: '' } })).values).toEqual([
      'plan.md',
    ])
    await expect(prompts.get({ name: 'review' })).rejects.toMatchObject({
      kind: 'invalid',
      detail: { reason: 'argument', argument: 'path' },
    })
    await expect(prompts.get({ name: 'absent' })).rejects.toMatchObject({ detail: { reason: 'unknown-name' } })
  })

  test('is notified when prompts change', async () => {
    const heard: ViewChange[] = []
    const subscription = view.subscribe?.((change) => heard.push(change))
    expect(await subscription?.addPrompts?.()).toBe(true)
    writeFileSync(folder.at(`prompts/new-${transport}.md`), 'New.\n')
    await vi.waitFor(() => expect(heard.some(({ prompts }) => prompts === true)).toBe(true), { timeout: patience })
    expect((await view.prompts?.list())?.items.map(({ name }) => name)).toContain(`new-${transport}`)
    subscription?.close()
  })
})
