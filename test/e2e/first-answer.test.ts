import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Running, start as startCommand, writeNotes } from '../support/cli.ts'

/** A mount that stays closed until the test writes into a named pipe: its certificates are read from there. */
interface Held {
  readonly config: string
  /** Gives the mount its certificates, or something else. */
  write(text: string): Promise<void>
}

const certificates = '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n'

let home = ''
let count = 0
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'hikidashi-first-'))
  await writeNotes(home)
})
afterAll(() => rm(home, { recursive: true, force: true }))

const running: Running[] = []
afterEach(() => {
  for (const { child } of running.splice(0)) child.kill('SIGKILL')
})

function start(...args: readonly string[]): Running {
  const server = startCommand(['serve', ...args], { cwd: home })
  running.push(server)
  return server
}

async function hold(more: object = {}): Promise<Held> {
  const name = `held-${count++}`
  const pipe = join(home, `${name}.pem`)
  await promisify(execFile)('mkfifo', [pipe])
  await writeFile(join(home, 'url'), 'postgres://nobody@127.0.0.1:1/none', { mode: 0o600 })
  const config = join(home, `${name}.json`)
  const mounts = {
    'file:///notes': { provider: 'files', root: 'notes' },
    'postgres://held': { provider: 'postgres', url: { file: 'url' }, tls: { ca: pipe } },
  }
  await writeFile(config, JSON.stringify({ instructions: 'Ask about the notes.', mounts, ...more }), { mode: 0o600 })
  return {
    config,
    write: async (text) => {
      // Opening the pipe waits until the server reads from it.
      const file = await open(pipe, 'w')
      await file.writeFile(text)
      await file.close()
    },
  }
}

/** The messages that a server writes to its output, by id. */
function answersOf({ child, ended }: Running) {
  const answers = new Map<unknown, Record<string, unknown>>()
  let rest = ''
  child.stdout.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const message = JSON.parse(line)
      answers.set(message.id, message)
    }
  })
  return {
    seen: answers,
    to: async (id: number): Promise<Record<string, unknown>> => {
      for (;;) {
        const answer = answers.get(id)
        if (answer !== undefined) return answer
        const isOver = await Promise.race([once(child.stdout, 'data').then(() => false), ended.then(() => true)])
        if (isOver && !answers.has(id)) throw new Error(`It ended without an answer to ${id}.`)
      }
    },
  }
}

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}
const discover = { jsonrpc: '2.0', id: 2, method: 'server/discover', params: { _meta: meta } }
const listing = { jsonrpc: '2.0', id: 3, method: 'resources/list', params: {} }
const capabilities = { resources: { subscribe: true, listChanged: true } }

describe('while a server opens its mounts,', () => {
  test('initialize, server/discover and ping are answered on stdio, and listings wait for all mounts', async () => {
    const { config, write } = await hold()
    const server = start('--stdio', '--config', config)
    const answers = answersOf(server)
    const say = (message: object) => server.child.stdin.write(`${JSON.stringify(message)}\n`)

    say(initialize)
    expect(await answers.to(1)).toMatchObject({
      result: { protocolVersion: '2025-06-18', capabilities, instructions: 'Ask about the notes.' },
    })
    say({ jsonrpc: '2.0', method: 'notifications/initialized' })
    say(listing)
    say({ ...listing, id: 4, method: 'resources/subscribe', params: { uri: 'file:///notes/README.md' } })
    say({ ...listing, id: 5 })
    // More of them than run at once: none takes the place of what can be answered.
    for (let id = 100; id < 130; id++) say({ ...listing, id })
    say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } })
    say(discover)
    expect(await answers.to(2)).toMatchObject({ result: { capabilities, instructions: 'Ask about the notes.' } })
    say({ jsonrpc: '2.0', id: 6, method: 'ping' })
    await answers.to(6)
    // The subscription needs the notes alone, which may be open by now; the listings need both mounts.
    expect([...answers.seen.keys()].filter((id) => id !== 4).sort()).toEqual([1, 2, 6])
    expect(await answers.to(4)).toMatchObject({ result: {} })
    // The catalog is open, and the listings have taken every slot of the gate.
    say({ ...discover, id: 7 })
    expect(await answers.to(7)).toMatchObject({ result: { capabilities } })
    say({ jsonrpc: '2.0', id: 8, method: 'ping' })
    expect(await answers.to(8)).toMatchObject({ result: {} })
    expect([...answers.seen.keys()].sort()).toEqual([1, 2, 4, 6, 7, 8])

    await write(certificates)
    const { result } = (await answers.to(3)) as { result: { resources: { uri: string }[] } }
    expect(result.resources.map(({ uri }) => uri)).toContain('file:///notes/README.md')
    for (let id = 100; id < 130; id++) expect(await answers.to(id)).toMatchObject({ result })
    expect(answers.seen.has(5)).toBe(false)
    server.child.stdin.end()
    expect(await server.ended).toMatchObject({ code: 0, signal: null })
  })

  test('with --strict, no request has to arrive before they are opened', async () => {
    const { config, write } = await hold()
    const server = start('--stdio', '--strict', '--config', config)
    await write(certificates)
    await server.says(/serving on stdio/)
    server.child.stdin.end()
    expect(await server.ended).toMatchObject({ code: 0, out: '' })
  })

  test('with --strict, a mount that cannot be opened ends the process with its message, and waiting requests are answered', async () => {
    const { config, write } = await hold()
    const server = start('--stdio', '--strict', '--config', config)
    const answers = answersOf(server)
    for (const message of [initialize, listing]) server.child.stdin.write(`${JSON.stringify(message)}\n`)
    await answers.to(1)
    await write('nothing of the kind')
    const failed = await answers.to(3)
    expect(failed).toMatchObject({ error: { data: { reason: 'unavailable' } } })
    expect(JSON.stringify(failed)).not.toContain(home)
    const { code, err } = await server.ended
    expect(code).toBe(1)
    expect(err).toContain('The mount postgres://held cannot be opened. ')
    expect(err).toContain('holds no certificates')
    expect(err).not.toContain('serving on stdio')
  })

  test('with --strict, a mount that cannot be opened is reported even if the input ends before any request', async () => {
    const { config, write } = await hold()
    const server = start('--stdio', '--strict', '--config', config)
    server.child.stdin.end()
    await write('nothing of the kind')
    const { code, err } = await server.ended
    expect({ code, told: err.includes('The mount postgres://held cannot be opened. ') }).toEqual({
      code: 1,
      told: true,
    })
  })

  test('with --strict, initialize and server/discover are answered over HTTP, and readiness is false', async () => {
    const { config, write } = await hold()
    const port = await freePort()
    const server = start('--http', String(port), '--strict', '--config', config)
    const url = `http://127.0.0.1:${port}/mcp`
    const post = (message: object, headers: Record<string, string> = {}) =>
      fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
        body: JSON.stringify(message),
      })
    const modern = { 'mcp-protocol-version': '2026-07-28' }
    await listens(port)
    const begun = await post(initialize)
    expect(await begun.json()).toMatchObject({ result: { capabilities, instructions: 'Ask about the notes.' } })
    const session = { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' }
    const found = await post(discover, { ...modern, 'mcp-method': 'server/discover' })
    expect(await found.json()).toMatchObject({ result: { capabilities, instructions: 'Ask about the notes.' } })
    const readiness = () => fetch(`http://127.0.0.1:${port}/readyz`)
    const before = await readiness()
    expect(await before.json()).toEqual({ status: 'opening' })
    expect(before.status).toBe(503)
    const listed = post({ ...listing, params: { _meta: meta } }, { ...modern, 'mcp-method': 'resources/list' })
    const inSession = post(listing, session)

    await write(certificates)
    for (const answer of await Promise.all([listed, inSession]))
      expect(JSON.stringify(await answer.json())).toContain('file:///notes/README.md')
    await server.says(/serves 2 mounts at /)
    expect((await readiness()).status).toBe(200)
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 0 })
  })

  test('with --strict, a mount that cannot be opened ends the HTTP service as well', async () => {
    const { config, write } = await hold()
    const port = await freePort()
    const server = start('--http', String(port), '--strict', '--config', config)
    await write('nothing of the kind')
    const { code, err } = await server.ended
    expect(code).toBe(1)
    expect(err).toContain('The mount postgres://held cannot be opened. ')
    expect(err).not.toContain('serves 2 mounts')
  })
})

describe('a mount that cannot be opened', () => {
  test('is left out on stdio with the reason in the log, and the rest is served', async () => {
    const { config, write } = await hold()
    const server = start('--stdio', '--config', config)
    const answers = answersOf(server)
    for (const message of [initialize, listing]) server.child.stdin.write(`${JSON.stringify(message)}\n`)
    await answers.to(1)
    await write('nothing of the kind')
    const { result } = (await answers.to(3)) as { result: { resources: { uri: string }[] } }
    expect(result.resources.map(({ uri }) => uri)).toContain('file:///notes/README.md')
    server.child.stdin.end()
    const { code, err } = await server.ended
    expect(code).toBe(0)
    expect(err).toMatch(
      /warn {2}the mount cannot be opened; it is tried again mount=postgres:\/\/held .*holds no certificates/,
    )
  })

  test('is logged over HTTP without a request, and the rest is served', async () => {
    const { config, write } = await hold()
    const server = start('--http', '0', '--config', config)
    const [, url = ''] = await server.says(/serves 2 mounts at (http:\/\/\S+)/)
    await write('nothing of the kind')
    await server.says(/the mount cannot be opened; it is tried again mount=postgres:\/\/held/)
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'resources/list',
      },
      body: JSON.stringify({ ...listing, params: { _meta: meta } }),
    })
    expect(JSON.stringify(await answer.json())).toContain('file:///notes/README.md')
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 0 })
  })

  test('ends the HTTP service if it is the only mount', async () => {
    await writeFile(join(home, 'url'), 'postgres://nobody@127.0.0.1:1/none', { mode: 0o600 })
    await writeFile(join(home, 'empty.pem'), 'nothing of the kind')
    const config = join(home, 'only.json')
    const mounts = { 'postgres://held': { provider: 'postgres', url: { file: 'url' }, tls: { ca: 'empty.pem' } } }
    await writeFile(config, JSON.stringify({ mounts }), { mode: 0o600 })
    const { code, err } = await start('--http', '0', '--config', config).ended
    expect(code).toBe(1)
    expect(err).toContain('No mount can be opened: postgres://held')
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('The server has no port.')
  return address.port
}

/** Waits until something listens: a refused connection is tried again. */
async function listens(port: number): Promise<void> {
  const health = `http://127.0.0.1:${port}/healthz`
  while (
    !(await fetch(health).then(
      ({ ok }) => ok,
      () => false,
    ))
  )
    await new Promise((resolve) => setImmediate(resolve))
}
