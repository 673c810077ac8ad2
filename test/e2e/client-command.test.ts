import { describe, expect, test } from 'vitest'
import { connect } from '../../src/client/index.ts'
import type { Log } from '../../src/core/log.ts'
// @ts-expect-error: the fixtures are JavaScript, since they run as programs of their own.
import { resources as held } from '../fixtures/mcp/data.mjs'
import { everything, failure, fixture, open } from '../support/mcp-servers.ts'

describe('a server command', () => {
  test('that does not exist is unavailable', async () => {
    expect(await failure(connect({ command: '/no/such/program' }))).toMatchObject({
      kind: 'unavailable',
      message:
        'The command /no/such/program cannot be started: the program does not exist (ENOENT). Install it, or give its full path.',
    })
  })

  test.each([
    ['repeats what it hears', 'cat', [], 'does not answer "initialize"'],
    ['writes another text and ends', 'echo', ['hello'], 'ended before it spoke MCP'],
    ['ends at once', 'false', [], 'ended before it spoke MCP'],
    ['is not executable', '/etc/passwd', [], 'cannot be started (EACCES)'],
  ])('that %s is unavailable, and the error says why and what to do', async (_, command, args, what) => {
    const error = await failure(connect({ command, args }))
    expect(error.kind).toBe('unavailable')
    expect(error.message).toContain(`The command ${command} `)
    expect(error.message).toContain(what)
    expect(error.message).toMatch(/\. (Check|Run)/)
  })

  test('that fails to start is unavailable, with the text of its standard error in the message', async () => {
    const error = await failure(connect(fixture('hostile', 'fails')))
    expect(error.kind).toBe('unavailable')
    expect(error.message).toContain('It said: the license has expired')
  })

  test('that speaks an unknown revision is unavailable', async () => {
    const error = await failure(connect(fixture('hostile', 'unknown-revision')))
    expect(error.kind).toBe('unavailable')
    expect(error.message).toContain('does not answer as an MCP server')
  })

  test('that exits at the first request of a new client is started again, with an older revision', async () => {
    const view = await open(fixture('hostile', 'exits'))
    expect(await everything(view)).toHaveLength(held.length)
  })

  test('that never answers is unavailable after the time-out', async () => {
    expect(await failure(connect(fixture('hostile', 'silent'), { timeoutMs: 200 }))).toMatchObject({
      kind: 'unavailable',
      message: `The command ${process.execPath} was started and did not answer in time. Check that it is an MCP server that speaks over stdio.`,
    })
  })

  test('can be cancelled while it is being started', async () => {
    const signal = AbortSignal.timeout(300)
    await expect(connect(fixture('hostile', 'silent'), { signal })).rejects.toThrow(/timeout|aborted/)
  })

  test('that writes garbage between its answers is still read', async () => {
    const view = await open(fixture('hostile', 'garbage'))
    expect(await everything(view)).toHaveLength(held.length)
  })

  test('that dies during a request is unavailable, at once and from then on', async () => {
    const view = await open(fixture('hostile', 'dies'))
    expect(await failure(view.read('memo://today'))).toMatchObject({ kind: 'unavailable' })
    expect(await failure(view.list())).toMatchObject({ message: 'The connection has ended. Connect again.' })
  })

  test('that is slow is unavailable for the slow request only', async () => {
    const view = await open(fixture('hostile', 'slow'), { timeoutMs: 1000 })
    expect(await failure(view.read('memo://today'))).toMatchObject({
      kind: 'unavailable',
      message: 'The server did not answer resources/read in time.',
    })
    expect((await view.list()).items).toHaveLength(2)
  })

  test('that answers with more than the limit gives the error too-large', async () => {
    const view = await open(fixture('hostile', 'huge'), { maxBytes: 100_000 })
    expect(await failure(view.read('memo://today'))).toMatchObject({ kind: 'too-large', detail: { limit: 100_000 } })
  })

  test('without resources has empty listings, and gives not-found for each URI', async () => {
    const view = await open(fixture('hostile', 'without'))
    expect(await view.list()).toEqual({ items: [], cache: { ttlMs: 0, scope: 'private' } })
    expect((await view.templates()).items).toEqual([])
    expect(await view.mounts()).toEqual([])
    expect((await failure(view.read('memo://today'))).kind).toBe('not-found')
    expect((await failure(view.directory({ uri: 'memo://' }))).kind).toBe('not-found')
  })

  test('without templates or completions has empty lists of them', async () => {
    const view = await open(fixture('hostile', 'garbage'))
    expect((await view.templates()).items).toEqual([])
    const request = { uriTemplate: 'x:{a}', argument: { name: 'a', value: '' } }
    expect(await view.complete(request)).toEqual({ values: [] })
  })

  test('may send null as the cursor of the next page', async () => {
    const view = await open(fixture('hostile', 'null'))
    expect(await view.list()).toMatchObject({ items: [{ uri: 'memo://today' }] })
    expect(await view.list()).not.toHaveProperty('nextCursor')
  })

  test('has its standard error logged, one line at a time', async () => {
    const said: unknown[] = []
    const log: Log = (level, _, fields) => said.push([level, fields?.stderr])
    await open(fixture('hostile', 'loud'), { log })
    await expect
      .poll(() => said)
      .toEqual([
        ['debug', 'first line'],
        ['debug', 'second line'],
      ])
  })

  test('gets the environment variables that are set for it, and not a secret in those of this process', async () => {
    process.env.HIKIDASHI_SECRET = 'secret'
    const said: unknown[] = []
    const script = `process.stderr.write(JSON.stringify([process.env.HIKIDASHI_SECRET, process.env.GIVEN, process.cwd()]) + '\\n')`
    const target = { command: process.execPath, args: ['-e', script], env: { GIVEN: 'yes' }, cwd: '/' }
    await failure(connect(target, { log: (_, __, fields) => said.push(fields?.stderr) }))
    expect(said).toContain('[null,"yes","/"]')
    delete process.env.HIKIDASHI_SECRET
  })

  test.each([
    ['that exits at the end of its input is ended when the view is closed', 'slow'],
    ['that ignores the end of its input is killed when the view is closed', 'stubborn'],
  ])('%s', async (_, mode) => {
    const pids: number[] = []
    const script = `process.stderr.write(process.pid + '\\n'); process.argv.splice(1, 0, ''); await import(process.argv[3])`
    const { args = [] } = fixture('hostile', mode) as { args?: string[] }
    const target = {
      command: process.execPath,
      args: ['--input-type=module', '-e', script.replace('process.argv[3]', JSON.stringify(args[0])), mode],
    }
    const view = await connect(target, { log: (_level, __, fields) => pids.push(Number(fields?.stderr)) })
    await expect.poll(() => pids.length).toBeGreaterThan(0)
    const pid = pids[0] ?? 0
    await Promise.all([view.close?.(), view.close?.()])
    await expect.poll(() => isRunning(pid)).toBe(false)
    expect((await failure(view.list())).kind).toBe('unavailable')
  })
})

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
