import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHere } from '../support/cli-here.ts'
import { createFolder } from '../support/folder.ts'

const token = 'tok3n-of-a-bearer-0123456789'
const folder = createFolder()
folder.write({
  ...{ token: `${token}\n`, empty: '\n', two: `${token}\n${token}\n`, basic: `Bearer ${token}\n` },
  ...{ bom: `\uFEFF${token}\r\n`, 'directory/': null },
})

/** A server that lets nobody in, and remembers the headers of its requests. */
const seen: string[][] = []
let server: Server
let url = ''
beforeAll(async () => {
  server = createServer((request, response) => {
    seen.push(request.rawHeaders)
    // It repeats the secret, as a careless server may.
    response.writeHead(400, { 'Content-Type': 'application/json' })
    const message = `no: ${request.headers.authorization ?? ''} ${String(request.headers['x-api-key'] ?? '')}`
    response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32600, message } }))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
})
afterAll(() => {
  server.close()
  server.closeAllConnections()
  folder.remove()
})

const env = { OWN_VALUE: 'v4lue-of-a-variable-9876', OWN_EMPTY: '', OWN_LINES: 'a\nb' }
const run = async (...words: readonly string[]) => {
  seen.length = 0
  return runHere(words, { cwd: folder.root, env })
}
const sent = (name: string) =>
  seen.map((raw) => raw[raw.findIndex((word, i) => i % 2 === 0 && word.toLowerCase() === name) + 1])

describe('a secret in a file or variable', () => {
  test.each(['ls', 'tree', 'stat', 'status', 'templates', 'search', 'read', 'pack', 'doctor'])(
    'is sent by %s as a token or a header, and not printed',
    async (command) => {
      const words = command === 'search' ? ['x'] : command === 'read' || command === 'stat' ? ['file:///x'] : []
      const flags = ['--bearer-file', 'token', '--header-env', 'X-Api-Key=OWN_VALUE', '--header', 'X-Plain: p']
      const { out, err } = await run(command, ...words, '--url', url, ...flags)
      expect(seen.length).toBeGreaterThan(0)
      expect(sent('authorization')).toContain(`Bearer ${token}`)
      expect(sent('x-api-key')).toContain(env.OWN_VALUE)
      expect(sent('x-plain')).toContain('p')
      expect(out + err).not.toContain(token)
      expect(out + err).not.toContain(env.OWN_VALUE)
    },
  )

  test('has no byte order mark and no line end of its file', async () => {
    await run('ls', '--url', url, '--bearer-file', 'bom')
    expect(sent('authorization')).toContain(`Bearer ${token}`)
  })

  test.each([
    [['--bearer-file', 'none'], /none cannot be read \(ENOENT\)/],
    [['--bearer-file', 'directory'], /directory cannot be read \(EISDIR\)/],
    [['--bearer-file', 'empty'], /empty is empty/],
    [['--bearer-file', 'two'], /must contain exactly one bearer token/],
    [['--bearer-file', 'basic'], /must contain exactly one bearer token/],
    [['--header-env', 'X-A=OWN_MISSING'], /OWN_MISSING is not set, or it is empty/],
    [['--header-env', 'X-A=OWN_EMPTY'], /OWN_EMPTY is not set, or it is empty/],
    [['--header-env', 'X-A=OWN_LINES'], /OWN_LINES contains characters that a header must not contain/],
    [['--header-env', 'X-A'], /NAME=VARIABLE/],
    [['--header-env', 'X A=OWN_VALUE'], /NAME=VARIABLE/],
    [['--header-env', '=OWN_VALUE'], /NAME=VARIABLE/],
    [['--bearer-file', 'token', '--header', 'authorization: x'], /authorization is given twice/],
    [['--header-env', 'X-A=OWN_VALUE', '--header-env', 'x-a=OWN_VALUE'], /x-a is given twice/],
  ])('is refused before a request if it is malformed, missing or given twice: %j', async (flags, told) => {
    const { code, err } = await run('ls', '--url', url, ...flags)
    expect(err).toMatch(told)
    expect(err).not.toContain(token)
    expect(code).toBe(2)
    expect(seen).toEqual([])
  })

  test.each(['ls', 'doctor'])('cannot be given to %s without a URL', async (command) => {
    expect((await run(command, '--bearer-file', 'token')).err).toContain('--bearer-file needs --url')
    expect((await run(command, '--header-env', 'X-A=OWN_VALUE')).err).toContain('--header-env needs --url')
  })

  test('is written by add as the name of a variable into the file of a host, and not as its value', async () => {
    const { out } = await run('add', 'claude-code', '--url', url, '--header-env', 'X-Api-Key=OWN_VALUE', '--print')
    expect(out).toContain('$'.concat('{OWN_VALUE}'))
    expect(out).not.toContain(env.OWN_VALUE)
    const local = await run('add', 'claude-code', '--header-env', 'X-Api-Key=OWN_VALUE', '--print')
    expect(local.err).toContain('--header-env needs --url')
  })
})
