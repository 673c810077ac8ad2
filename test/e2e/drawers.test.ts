import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { main, type Running, run, start } from '../support/cli.ts'
import { type EraClient, eras } from '../support/era-clients.ts'
import { type Listening, listening } from '../support/listening.ts'
import { someOf } from '../support/volume.ts'
import { hasXvfb, startXvfb, type Xvfb } from '../support/xvfb.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const fixture = fileURLToPath(new URL('../fixtures/drawers/', import.meta.url))
const repository = fileURLToPath(new URL('../..', import.meta.url))
const token = 'a-token-of-the-test'

/** A site and an API, which knows who asks. */
const origin = createServer((request, response) => {
  const send = (type: string, body: string, status = 200) =>
    response.writeHead(status, { 'Content-Type': type }).end(body)
  const { url = '' } = request
  if (url.startsWith('/site/')) return send('text/html', `<h1>Page</h1><p>This is <b>${url.slice(6)}</b>.</p>`)
  if (request.headers.authorization !== `Bearer ${token}`) return send('application/json', '{}', 401)
  const users = [
    { id: 7, name: 'Ann' },
    { id: 12, name: 'Bob' },
  ]
  if (url === '/api/users') return send('application/json', JSON.stringify(users))
  const found = users.find(({ id }) => url === `/api/users/${id}`)
  return send('application/json', JSON.stringify(found ?? {}), found === undefined ? 404 : 200)
})

let folder: string
let config: string
let site: Listening
let display: Xvfb | undefined
let server: Running | undefined
/** In a tenth of the volume, one of them. */
const transports = someOf('drawers', ['stdio', 'HTTP'])
const clients = new Map<string, EraClient>()
const env = { LANG: 'ja_JP.UTF-8', CRM_TOKEN: token }

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hikidashi-drawers-'))
  config = join(folder, 'hikidashi.json')
  site = await listening(origin)
  display = hasXvfb ? await startXvfb(64, 48) : undefined
  const written = readFileSync(join(fixture, 'hikidashi.jsonc'), 'utf8')
    .replaceAll('"../../.."', JSON.stringify(repository))
    .replace('"prompts", "root": "prompts"', `"prompts", "root": ${JSON.stringify(join(fixture, 'prompts'))}`)
    .replaceAll('ORIGIN', site.url)
  // Without a display there is nothing to show.
  const last = /,\s*"screen:\/\/localhost": \{.*\}/
  writeFileSync(
    config,
    display === undefined ? written.replace(last, '') : written.replaceAll('DISPLAY', display.display),
  )
  const newest = eras.at(-1) ?? expect.fail('no client')
  if (transports.includes('HTTP')) {
    server = start(['serve', '--config', config, '--http', '0'], { cwd: folder, env })
    const [, url = ''] = await server.says(/at (http:\/\/127\.0\.0\.1:\d+\/mcp)\n/)
    clients.set('HTTP', (await newest.connect({ url })).client)
  }
  if (!transports.includes('stdio')) return
  const args = [`CRM_TOKEN=${token}`, 'LANG=ja_JP.UTF-8', process.execPath, main]
  const command = { command: 'env', args: [...args, 'serve', '--config', config, '--stdio', '--log-level', 'error'] }
  clients.set('stdio', (await newest.connect(command)).client)
})

afterAll(async () => {
  for (const client of clients.values()) await client.close()
  server?.child.kill('SIGTERM')
  await server?.ended
  await display?.close()
  await site?.close()
  rmSync(folder, { recursive: true, force: true })
})

/** What there is of each drawer: a resource, what its content holds, and a template that completes. */
const drawers: readonly (readonly [uri: string, content: string, template?: string, name?: string, typed?: string])[] =
  [
    ['file:///hikidashi/src/index.ts', 'createCatalog', 'file:///hikidashi/{+path}', 'path', 'src/ind'],
    ['git://hikidashi/HEAD/package.json', '"hikidashi"', 'git://hikidashi/{+ref}/{+path}', 'ref', 'HE'],
    ['config://hikidashi/package.json', '"name"', 'config://hikidashi/{+path}{?pointer,as}', 'path', 'pack'],
    ['env://process/LANG', 'ja_JP.UTF-8', 'env://process/{name}', 'name', 'LAN'],
    ['zed://prompt-library/explain.md', 'Explain this file', 'zed://prompt-library/{+path}', 'path', 'ex'],
    ['memo://team/greeting', 'Be kind.'],
    ['memo://team/rules/style.md', 'Plain words.', 'memo://team/rules/{+path}{?lines,bytes}', 'path', 'st'],
    ['data:text/plain;charset=utf-8,Hello%20there', 'Hello there'],
    ['web://site/guide/start', 'guide/start', 'web://site/{+path}{?as,lines,bytes}', 'path', 'guide/s'],
    ['api://crm/users/12', 'Bob', 'api://crm/users/{id}', 'id', '1'],
  ]

describe('one configuration with many kinds of sources', () => {
  test('is accepted by hikidashi check', async () => {
    const { code, out, err } = await run(['check', '--config', config, '--limit', '5'], { cwd: folder, env })
    expect({ code, out, err }).toMatchObject({ code: 0 })
    expect(out.match(/^ok /gm)).toHaveLength(display === undefined ? 10 : 11)
  })

  describe.each([...transports])('over %s', (transport) => {
    const client = () => clients.get(transport) ?? expect.fail('no client')
    const read = async (uri: string) => {
      const { contents } = await client().readResource({ uri })
      return contents[0] as { readonly text?: string; readonly blob?: string; readonly mimeType?: string }
    }

    test('lists a resource of each mount', async () => {
      const uris = (await client().listResources()).resources.map(({ uri }) => uri)
      expect(new Set(uris).size).toBe(uris.length)
      expect(uris).toEqual(expect.arrayContaining(drawers.map(([uri]) => uri)))
      expect(uris.includes('screen://localhost/display1')).toBe(display !== undefined)
    })

    test('reads a resource of each mount', async () => {
      for (const [uri, content] of drawers) expect((await read(uri)).text, uri).toContain(content)
      expect((await read('memo://team/rules/dot.bin')).blob).toBe('AAEC')
      expect((await read('web://site/intro?as=markdown')).text).toContain('This is **intro**.')
      if (display === undefined) return
      const { blob = '', mimeType } = await read('screen://localhost/display1')
      expect(mimeType).toBe('image/png')
      const png = Buffer.from(blob, 'base64')
      expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([display.width, display.height])
    })

    test('completes a variable of a template of each mount that has templates', async () => {
      const { resourceTemplates } = await client().listResourceTemplates()
      const templates = resourceTemplates.map(({ uriTemplate }) => uriTemplate)
      for (const [, , uri, name = '', value = ''] of drawers) {
        if (uri === undefined) continue
        expect(templates).toContain(uri)
        const { values } = (await client().complete({ ref: { type: 'ref/resource', uri }, argument: { name, value } }))
          .completion
        expect(values.length, uri).toBeGreaterThan(0)
        expect(values[0], uri).toMatch(new RegExp(`^${value}`))
      }
    })

    test('lists the prompts, and fills them with texts of the other mounts', async () => {
      const { prompts } = await client().listPrompts()
      expect(prompts.map(({ name }) => name)).toEqual(['explain', 'assemble_context'])
      const ref = { type: 'ref/prompt', name: 'explain' } as const
      const { completion } = await client().complete({ ref, argument: { name: 'path', value: 'src/ind' } })
      const [path = ''] = completion.values
      expect(path).toBe('src/index.ts')
      const { messages } = await client().getPrompt({ name: 'explain', arguments: { path } })
      const text = readFileSync(join(repository, path), 'utf8')
      expect(messages.map(({ content }) => content)).toMatchObject([
        { type: 'text', text: 'Explain this file:' },
        { type: 'resource', resource: { uri: 'file:///hikidashi/src/index.ts', text } },
        { type: 'text', text: 'By these rules:' },
        { type: 'resource', resource: { text: '# Style\n\nPlain words.\n', mimeType: 'text/markdown' } },
      ])
    })
  })
})
