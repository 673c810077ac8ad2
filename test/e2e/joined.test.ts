import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { main, run, writeNotes } from '../support/cli.ts'

let root = ''
let folder = ''
/** A short path: that of a socket has a limit. */
let state = ''
let count = 0
beforeEach(() => {
  state = join(root, `s${++count}`)
})
const env = () => ({ XDG_STATE_HOME: state, HOME: root, USERPROFILE: root })
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'hj-'))
  folder = await writeNotes(root)
  await writeFile(join(folder, 'sealing.md'), '# Sealing\n\nA cursor is sealed with a secret of the server.\n')
})
afterAll(() => rm(root, { recursive: true, force: true }))

interface Answer {
  readonly id?: number
  readonly method?: string
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly message: string }
}

interface HostOptions {
  /** What is served. */
  readonly what?: readonly string[]
  readonly words?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

const hosts: ChildProcessWithoutNullStreams[] = []
afterEach(() => {
  for (const child of hosts.splice(0)) child.kill('SIGKILL')
})

/** A host: it starts the server of the folder, and talks to it over stdio. */
async function openHost(...words: readonly string[]) {
  return openHostWith({ words })
}

async function openHostWith({ what = [folder], words = [], env: more = {} }: HostOptions) {
  const child: ChildProcessWithoutNullStreams = spawn(
    process.execPath,
    [main, 'serve', ...what, '--stdio', '--log-level', 'error', ...words],
    { env: { ...process.env, ...env(), ...more } },
  )
  hosts.push(child)
  child.stdin.on('error', () => {})
  const waiting = new Map<number, (answer: Answer) => void>()
  const heard: Answer[] = []
  createInterface({ input: child.stdout }).on('line', (line) => {
    const answer = JSON.parse(line) as Answer
    heard.push(answer)
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer)
  })
  let last = 0
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const ask = (method: string, params: object = {}) =>
    new Promise<Answer>((done) => {
      const id = ++last
      waiting.set(id, done)
      send({ id, method, params })
    })
  const clientInfo = { name: 'host', version: '1' }
  await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
  send({ method: 'notifications/initialized' })
  const ended = once(child, 'exit')
  return {
    ...{ child, heard, ask, ended },
    close: async () => {
      child.stdin.end()
      await ended
    },
  }
}

const acknowledged = 'notifications/subscriptions/acknowledged'
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'host', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

const socketFolder = () => join(state, 'hikidashi/run')
const sockets = () => readdir(socketFolder()).catch(() => [])

describe.skipIf(process.platform === 'win32')('the servers of several hosts', () => {
  test('are one process; when it dies, another takes over, and no pending request, subscription or change is lost', async () => {
    const first = await openHost()
    expect(await sockets()).toHaveLength(1)
    const [socket = ''] = await sockets()
    expect((await stat(join(socketFolder(), socket))).mode & 0o777).toBe(0o600)
    expect((await stat(socketFolder())).mode & 0o777).toBe(0o700)
    const second = await openHost()
    const third = await openHost()
    // None of them made a socket of its own.
    expect(await sockets()).toEqual([socket])
    const uri = `file://${folder}/sealing.md`
    expect((await second.ask('resources/subscribe', { uri })).result).toEqual({})
    const listening = third.ask('subscriptions/listen', {
      notifications: { resourceSubscriptions: [uri] },
      _meta: meta,
    })
    await vi.waitFor(() => expect(third.heard.map(({ method }) => method)).toContain(acknowledged), 20_000)
    const asked = [second.ask('resources/list'), third.ask('resources/read', { uri })]
    first.child.kill('SIGKILL')
    const [list, read] = await Promise.all(asked)
    expect(list?.result?.resources).toEqual(expect.arrayContaining([expect.objectContaining({ uri })]))
    expect(JSON.stringify(read?.result)).toContain('sealed with a secret')
    // A change while nobody watched is told, too.
    const updated = expect.objectContaining({ method: 'notifications/resources/updated', params: { uri } })
    await vi.waitFor(() => expect(second.heard).toContainEqual(updated), 20_000)
    expect(second.heard).toContainEqual(expect.objectContaining({ method: 'notifications/resources/list_changed' }))
    // A stream of 2026-07-28 ends with its result, so that its client listens anew.
    expect((await listening).result).toMatchObject({ resultType: 'complete' })
    const known = second.heard.length
    // The subscription goes on at the new server, and its answer is not given twice.
    await vi.waitFor(
      async () => {
        await writeFile(join(folder, 'sealing.md'), `# Sealing\n\nA cursor is sealed with a secret of the server.\n\n`)
        expect(second.heard.slice(known)).toContainEqual(updated)
      },
      { timeout: 20_000, interval: 300 },
    )
    // A session of another host hears nothing of it.
    expect(third.heard).not.toContainEqual(updated)
    const ids = second.heard.flatMap(({ id }) => (id === undefined ? [] : [id]))
    expect(ids).toEqual([...new Set(ids)])
    await third.close()
    await second.close()
    expect(await sockets()).toEqual([])
  })

  test('are one process only with the same command line, and not with --no-share', async () => {
    const first = await openHost()
    const other = await openHost('--only', 'files')
    expect(await sockets()).toHaveLength(2)
    // Hosts put folders of their own into the PATH.
    const third = await openHostWith({ env: { PATH: `/opt/host/arg0:${process.env.PATH}` } })
    const alone = await openHost('--no-share')
    expect(await sockets()).toHaveLength(2)
    expect((await alone.ask('ping')).result).toEqual({})
    await Promise.all([first.close(), other.close(), third.close(), alone.close()])
  })

  test('take over a socket that a killed process has left', async () => {
    const killed = await openHost()
    killed.child.kill('SIGKILL')
    await killed.ended
    const next = await openHost()
    expect((await next.ask('ping')).result).toEqual({})
    expect(await sockets()).toHaveLength(1)
    await next.close()
  })

  test.each([
    ['a state folder that cannot be written', () => '/proc/x'],
    ['a socket whose path would be too long', () => join(root, 's'.repeat(90))],
  ])('answer also with %s', async (_, state) => {
    const first = await openHostWith({ env: { XDG_STATE_HOME: state() } })
    const second = await openHostWith({ env: { XDG_STATE_HOME: state() } })
    expect((await first.ask('ping')).result).toEqual({})
    expect((await second.ask('ping')).result).toEqual({})
    await Promise.all([first.close(), second.close()])
  })
})

/** A process that listens in the place of a server that has ended. */
async function standIn(
  onMessage: (message: Answer & { method?: string }, socket: Socket) => void,
  greeting = JSON.stringify({ cursorSecret: '', pid: 1 }),
) {
  const host = await openHost()
  const [name = ''] = await sockets()
  host.child.kill('SIGKILL')
  await host.ended
  const path = join(socketFolder(), name)
  await rm(path)
  const clients: Socket[] = []
  const server = createServer((socket) => {
    clients.push(socket)
    if (greeting !== '') socket.write(`${greeting}\n`)
    createInterface({ input: socket })
      .on('error', () => {})
      .on('line', (line) => onMessage(JSON.parse(line), socket))
    socket.on('error', () => {})
  }).listen(path)
  await once(server, 'listening')
  return {
    clients,
    close: async () => {
      for (const client of clients) client.destroy()
      await new Promise((done) => server.close(done))
    },
  }
}

describe.skipIf(process.platform === 'win32')('a server that others have joined', () => {
  test('is left by the others when it stops answering, and new servers do not join it', {
    timeout: 90_000,
  }, async () => {
    const first = await openHost()
    const second = await openHost()
    first.child.kill('SIGSTOP')
    const list = second.ask('resources/list')
    const third = await openHost()
    expect((await third.ask('ping')).result).toEqual({})
    expect((await list).result).toHaveProperty('resources')
    const question = JSON.stringify({ prompt: 'How is a cursor sealed with a secret of the server?', cwd: folder })
    const words = ['pack', '--hook', 'claude-code', '--wait', '20000']
    // The hook asks the index instead.
    await vi.waitFor(
      async () => expect((await run(words, { cwd: root, env: env(), input: question })).out).toContain('sealed with'),
      { timeout: 30_000, interval: 300 },
    )
    first.child.kill('SIGCONT')
    expect((await first.ask('ping')).result).toEqual({})
    await Promise.all([first.close(), second.close(), third.close()])
  })

  test('is replaced once for a pending request; if its replacement ends too, the request gets an error', async () => {
    let asked = 0
    const server = await standIn(({ id, method }, socket) => {
      if (method === 'initialize') socket.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: {} })}\n`)
      if (method !== 'resources/list') return
      asked++
      socket.destroy()
    })
    const host = await openHost()
    expect((await host.ask('resources/list')).error?.message).toBe(
      'Several servers have ended during this request, which may be the reason. Change the request before you send it again.',
    )
    expect(asked).toBe(2)
    host.child.kill('SIGKILL')
    await host.ended
    await server.close()
  })

  test.each([
    ['does not greet', ''],
    ['greets with something else', 'good morning\n'],
  ])('is not waited for if it %s', async (_, greeting) => {
    const server = await standIn(() => {}, greeting)
    const host = await openHost()
    expect((await host.ask('ping')).result).toEqual({})
    expect(server.clients).toHaveLength(1)
    await host.close()
    await server.close()
  })

  test('gives cursors of its lists that its successor accepts', async () => {
    const many = join(root, 'many')
    await mkdir(many)
    await Promise.all(Array.from({ length: 1500 }, (_, at) => writeFile(join(many, `${at}.md`), `# ${at}\n`)))
    const first = await openHostWith({ what: [many], words: ['--only', 'files'] })
    const second = await openHostWith({ what: [many], words: ['--only', 'files'] })
    const page = (await second.ask('resources/list')).result
    expect(page?.nextCursor).toBeTypeOf('string')
    first.child.kill('SIGKILL')
    const next = await second.ask('resources/list', { cursor: page?.nextCursor })
    expect(next.result?.resources).toBeInstanceOf(Array)
    expect(next.result?.resources).not.toEqual(page?.resources)
    await second.close()
  })

  test('does not show the secrets in the environment of the others', async () => {
    const secret = 'violet-Anchor-5521-tide'
    await writeFile(join(folder, 'harbour.md'), `The word is ${secret}.\n`)
    const first = await openHost()
    const second = await openHostWith({ env: { HARBOUR_TOKEN: secret } })
    expect(await sockets()).toHaveLength(1)
    const { result } = await second.ask('resources/read', { uri: `file://${folder}/harbour.md` })
    expect(JSON.stringify(result)).toContain('The word is [redacted].')
    await Promise.all([first.close(), second.close()])
  })

  test('is replaced by a new server that has found more mounts in the folder', async () => {
    const growing = join(root, 'growing')
    await mkdir(growing)
    await writeFile(join(growing, 'a.md'), '# A\n')
    const first = await openHostWith({ what: [growing] })
    await mkdir(join(growing, 'skills/mooring'), { recursive: true })
    const skill = '---\nname: mooring\ndescription: How to moor.\n---\n# Mooring\n'
    await writeFile(join(growing, 'skills/mooring/SKILL.md'), skill)
    const second = await openHostWith({ what: [growing] })
    await vi.waitFor(
      async () => expect(JSON.stringify((await second.ask('resources/list')).result)).toContain('skill://growing'),
      { timeout: 20_000, interval: 200 },
    )
    expect(second.heard.map(({ method }) => method)).toContain('notifications/resources/list_changed')
    await Promise.all([first.close(), second.close()])
    expect(await sockets()).toEqual([])
  })
})

describe.skipIf(process.platform === 'win32')('a server does not join another one', () => {
  test.each([
    ['with another git program', () => ({ env: { PATH: `${join(root, 'bin')}:${process.env.PATH}` } })],
    ['with other settings of git', () => ({ env: { GIT_CONFIG_GLOBAL: '/dev/null' } })],
    ['with other options of Node', () => ({ env: { NODE_OPTIONS: '--max-old-space-size=500' } })],
    ['of a folder that is spelled in another way', () => ({ what: [join(root, 'link')] })],
  ])('%s', async (_, other) => {
    await symlink(folder, join(root, 'link')).catch(() => {})
    await mkdir(join(root, 'bin'), { recursive: true })
    await writeFile(join(root, 'bin/git'), '#!/bin/sh\n', { mode: 0o755 })
    const first = await openHost()
    const second = await openHostWith(other())
    expect(await sockets()).toHaveLength(2)
    await Promise.all([first.close(), second.close()])
  })

  test('if its configuration names variables, which can differ', async () => {
    const write = async (name: string, mount: object) => {
      const file = join(root, `${name}.json`)
      await writeFile(
        file,
        JSON.stringify({ mounts: { 'file:///notes': { provider: 'files', root: folder }, ...mount } }),
      )
      return file
    }
    const variables = await write('variables', { 'env://a': { provider: 'env', allow: ['LANG'] } })
    const plain = await write('plain', {})
    for (const [config, places] of [
      [variables, 0],
      [plain, 1],
    ] as const) {
      const start = () => openHostWith({ what: ['--config', config] })
      const pair = [await start(), await start()]
      expect(await sockets()).toHaveLength(places)
      await Promise.all(pair.map((host) => host.close()))
    }
  })

  test('that was killed and left its socket behind: of many servers that start at once, one takes its place', async () => {
    const killed = await openHost()
    killed.child.kill('SIGKILL')
    await killed.ended
    const all = await Promise.all(Array.from({ length: 6 }, () => openHost()))
    expect(await sockets()).toHaveLength(1)
    for (const host of all) expect((await host.ask('ping')).result).toEqual({})
    await Promise.all(all.map((host) => host.close()))
    expect(await sockets()).toEqual([])
  })
})

describe('the hook of a host', () => {
  const ask = (prompt: unknown, ...more: readonly string[]) =>
    run(['pack', '--hook', 'claude-code', '--wait', '20000', ...more], {
      ...{ cwd: root, env: env() },
      input:
        typeof prompt === 'string' ? JSON.stringify({ prompt, cwd: folder, hook_event_name: 'UserPromptSubmit' }) : '{',
    })

  test('gets a context from the running server, or without a server from its index, and hikidashi why explains it', async () => {
    const host = await openHost()
    const found = await vi.waitFor(
      async () => {
        const answer = await ask('How is a cursor sealed with a secret of the server? password: hunter2Zebra77')
        expect(answer.out).toContain('additionalContext')
        return answer
      },
      { timeout: 30_000, interval: 200 },
    )
    expect(found).toMatchObject({ code: 0, err: '' })
    const { hookSpecificOutput } = JSON.parse(found.out) as { hookSpecificOutput: Record<string, string> }
    expect(hookSpecificOutput.hookEventName).toBe('UserPromptSubmit')
    expect(hookSpecificOutput.additionalContext).toMatch(/are not instructions[\s\S]*sealed with a secret/)
    const why = await run(['why', '--context', '--json'], { cwd: root, env: env() })
    const [record] = (JSON.parse(why.out) as { contexts: Record<string, unknown>[] }).contexts
    expect(record).toMatchObject({
      host: 'claude-code',
      folder,
      from: process.platform === 'win32' ? 'index' : 'server',
    })
    expect(why.out).toContain('[redacted]')
    expect(why.out).not.toContain('hunter2')
    await host.close()
    expect((await ask('How is a cursor sealed?')).out).toContain('additionalContext')
    // opencode puts quotes around a prompt of its command line.
    expect((await ask('"How does the server seal a cursor?"')).out).toContain('sealed with a secret')
    expect((await ask('How is a cursor sealed?')).out).toContain('additionalContext')
    const words = await run(['why', '--context'], { cwd: root, env: env() })
    expect(words.out).toMatch(/“How is a cursor sealed\?”[\s\S]*from the index[\s\S]*sealing\.md/)
  })

  test('prints nothing if no resource fits, and never fails', async () => {
    const silent = { code: 0, out: '', err: '' }
    expect(await ask('thanks, go on')).toEqual(expect.objectContaining(silent))
    expect(await ask('/compact the cursor sealed')).toEqual(expect.objectContaining(silent))
    expect(await ask('translate a poem by Goethe into Italian')).toEqual(expect.objectContaining(silent))
    expect(await ask(undefined)).toEqual(expect.objectContaining(silent))
    expect(await ask('How is a cursor sealed?', '--config', 'missing.json')).toEqual(expect.objectContaining(silent))
    expect((await run(['why', '--context'], { cwd: root, env: env() })).out).toContain('nothing: the hook failed')
  })
})
