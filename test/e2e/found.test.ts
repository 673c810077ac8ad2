import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { addToken } from '../../src/server/auth/token-file.ts'
import { type Running, start } from '../support/cli.ts'
import { createFolder, type Folder } from '../support/folder.ts'

let folder: Folder
let server: Running | undefined
beforeEach(() => {
  folder = createFolder()
  folder.write({ 'docs/a.md': '# A\n', 'pay/b.md': '# B\n' })
})
afterEach(async () => {
  server?.child.kill('SIGTERM')
  await server?.ended
  server = undefined
  folder.remove()
})

const facts = {
  name: 'org.example/context',
  url: 'https://context.example.org/mcp',
  description: 'The documents of Example.',
}

async function serve(config: { readonly http?: object; readonly [key: string]: unknown }): Promise<string> {
  const mounts = {
    'docs://manual': { provider: 'files', root: join(folder.root, 'docs'), title: 'The [manual]' },
    'pay://salaries': { provider: 'files', root: join(folder.root, 'pay'), title: 'Salaries', access: ['boss'] },
  }
  const file = join(folder.outside, 'hikidashi.json')
  const http = { listen: '127.0.0.1:0', ...config.http }
  writeFileSync(file, JSON.stringify({ name: 'example', mounts, ...config, http }))
  server = start(['serve', '--config', file], { cwd: folder.outside })
  const [, origin = ''] = await server.says(/(http:\/\/127\.0\.0\.1:\d+)\/mcp/)
  return origin
}

describe('/llms.txt', () => {
  test('needs a token, lists the mounts that the caller may see (a denied mount is absent), and is audited', async () => {
    const tokens = join(folder.outside, 'tokens.json')
    const { token: boss } = await addToken(tokens, { roles: ['boss'], name: 'boss' })
    const { token: guest } = await addToken(tokens, { roles: [], name: 'guest' })
    const audit = join(folder.outside, 'audit.jsonl')
    const origin = await serve({ http: { auth: { tokens } }, audit: { file: audit } })
    const ask = (token?: string, method = 'GET') =>
      fetch(`${origin}/llms.txt`, {
        method,
        ...(token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } }),
      })

    expect((await ask()).status).toBe(401)
    const answer = await ask(boss)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    const whole = await answer.text()
    expect(whole).toMatch(
      /^# example\n\n> This server serves 2 mounts as MCP resources, to read only\. .* at http.*\/mcp\.\n\n/,
    )
    expect(whole).toMatch(
      /\n## Mounts\n\n- \[The \\\[manual\\\]\]\(docs:\/\/manual\): files\n- \[Salaries\]\(pay:\/\/salaries\): files\n$/,
    )

    const part = await (await ask(guest)).text()
    expect(part).toContain('serves 1 mount as')
    expect(part).toContain('(docs://manual)')
    expect(part).not.toMatch(/salar|pay/i)

    expect((await ask(boss, 'POST')).status).toBe(405)
    const head = await ask(boss, 'HEAD')
    expect([head.status, await head.text()]).toEqual([200, ''])
    const records = readFileSync(audit, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(records).toContainEqual(expect.objectContaining({ verb: 'list', uri: '/llms.txt', outcome: 'ok' }))
  })
})

describe('the server card and the AI catalog', () => {
  test('are absent by default', async () => {
    const origin = await serve({})
    const nothing = await (await fetch(`${origin}/nothing`)).text()
    for (const path of ['/mcp/server-card', '/.well-known/ai-catalog.json']) {
      const answer = await fetch(origin + path)
      expect([answer.status, await answer.text()], path).toEqual([404, nothing])
    }
  })

  test('are read without a token from any origin, state facts of the configuration but no mounts, and the card is revalidated by its ETag', async () => {
    const tokens = join(folder.outside, 'tokens.json')
    await addToken(tokens, { roles: [], name: 'a' })
    const origin = await serve({ http: { public: { ...facts, title: 'Example' }, auth: { tokens } } })
    const elsewhere = { Origin: 'https://elsewhere.example' }
    const catalog = await fetch(`${origin}/.well-known/ai-catalog.json`, { headers: elsewhere })
    expect(catalog.headers.get('content-type')).toBe('application/ai-catalog+json')
    expect(await catalog.json()).toEqual({
      specVersion: '1.0',
      entries: [
        {
          identifier: 'urn:air:example.org:mcp:context',
          type: 'application/mcp-server-card+json',
          url: 'https://context.example.org/mcp/server-card',
        },
      ],
    })

    const card = await fetch(`${origin}/mcp/server-card`, { headers: elsewhere })
    expect(Object.fromEntries(card.headers)).toMatchObject({
      'content-type': 'application/mcp-server-card+json',
      'access-control-allow-origin': '*',
      'access-control-expose-headers': 'ETag',
      'cache-control': 'public, max-age=3600',
    })
    expect(await card.json()).toEqual({
      $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
      name: facts.name,
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      description: facts.description,
      title: 'Example',
      remotes: [
        {
          type: 'streamable-http',
          url: facts.url,
          supportedProtocolVersions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'],
        },
      ],
    })

    const tag = card.headers.get('etag') ?? expect.fail('no entity tag')
    const again = await fetch(`${origin}/mcp/server-card`, { headers: { 'If-None-Match': tag } })
    expect([again.status, await again.text()]).toEqual([304, ''])
    const preflight = await fetch(`${origin}/mcp/server-card`, { method: 'OPTIONS' })
    expect(preflight.headers.get('access-control-allow-headers')).toContain('If-None-Match')
    expect((await fetch(`${origin}/mcp/server-card`, { method: 'POST' })).status).toBe(405)
  })

  test('with a name that a card cannot have are refused', async () => {
    const file = join(folder.outside, 'hikidashi.json')
    const http = { listen: '127.0.0.1:0', public: { ...facts, name: 'context' } }
    writeFileSync(file, JSON.stringify({ mounts: {}, http }))
    const { code, err } = await start(['serve', '--config', file], { cwd: folder.outside }).ended
    expect(code).not.toBe(0)
    expect(err).toContain('This is not the name of a public server.')
  })
})
