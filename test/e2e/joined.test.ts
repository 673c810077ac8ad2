import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { main, run, writeNotes } from '../support/cli.ts'

let root = ''
let folder = ''
/** A short path: that of a socket has a limit. */
const env = () => ({ XDG_STATE_HOME: join(root, 's'), HOME: root, USERPROFILE: root })
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
}

/** A host: it starts the server of the folder, and talks to it over stdio. */
async function openHost(...more: readonly string[]) {
  const child: ChildProcessWithoutNullStreams = spawn(
    process.execPath,
    [main, 'serve', folder, '--stdio', '--log-level', 'error', ...more],
    { env: { ...process.env, ...env() } },
  )
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

const socketFolder = () => join(root, 's/hikidashi/run')
const sockets = () => readdir(socketFolder()).catch(() => [])

describe.skipIf(process.platform === 'win32')('the servers of several hosts', () => {
  test('are one process, which hands over when it dies, and no request is lost', async () => {
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
    const ids = second.heard.flatMap(({ id }) => (id === undefined ? [] : [id]))
    expect(ids).toEqual([...new Set(ids)])
    await third.close()
    await second.close()
    expect(await sockets()).toEqual([])
  })

  test('are joined only with the same command line, and not with --no-share', async () => {
    const first = await openHost()
    const other = await openHost('--only', 'files')
    expect(await sockets()).toHaveLength(2)
    const alone = await openHost('--no-share')
    expect(await sockets()).toHaveLength(2)
    expect((await alone.ask('ping')).result).toEqual({})
    await Promise.all([first.close(), other.close(), alone.close()])
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
})

describe('the hook of a host', () => {
  const ask = (prompt: unknown, ...more: readonly string[]) =>
    run(['pack', '--hook', 'claude-code', '--wait', '20000', ...more], {
      ...{ cwd: root, env: env() },
      input:
        typeof prompt === 'string' ? JSON.stringify({ prompt, cwd: folder, hook_event_name: 'UserPromptSubmit' }) : '{',
    })

  test('gets a context from the running server and from its index, and the log says why', async () => {
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

  test('says nothing where nothing fits, and never fails', async () => {
    const silent = { code: 0, out: '', err: '' }
    expect(await ask('thanks, go on')).toEqual(expect.objectContaining(silent))
    expect(await ask('/compact the cursor sealed')).toEqual(expect.objectContaining(silent))
    expect(await ask('translate a poem by Goethe into Italian')).toEqual(expect.objectContaining(silent))
    expect(await ask(undefined)).toEqual(expect.objectContaining(silent))
    expect(await ask('How is a cursor sealed?', '--config', 'missing.json')).toEqual(expect.objectContaining(silent))
    expect((await run(['why', '--context'], { cwd: root, env: env() })).out).toContain('nothing: it failed')
  })
})
