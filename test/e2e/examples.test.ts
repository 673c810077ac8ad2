import { readFileSync } from 'node:fs'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'jsonc-parser'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type AuthorizationServer, startAuthorizationServer } from '../support/authorization-server.ts'
import { main, start } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'
import { eras } from '../support/era-clients.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { openTestRepository } from '../support/git.ts'
import { connectAs } from '../support/oauth-client.ts'

// Several processes each: slow where the machine is busy.
vi.setConfig({ testTimeout: 120_000 })

const root = fileURLToPath(new URL('../..', import.meta.url))
const examples = join(root, 'examples')
const tsx = ['--import', new URL('../../node_modules/tsx/dist/loader.mjs', import.meta.url).href]

const connect = async (args: readonly string[], cwd?: string) => {
  const place = { command: process.execPath, args: [...args], ...(cwd === undefined ? {} : { cwd }) }
  return (await eras.at(-1)?.connect(place))?.client ?? expect.fail('no client')
}

let folder: Folder
beforeEach(() => {
  folder = createFolder()
})
afterEach(() => folder.remove())

describe('examples/claude-code', () => {
  test('serves a project to the host that starts the command of .mcp.json', async () => {
    folder.write({
      'README.md': '# The project\n',
      'src/cursor.ts': 'export const sealed = true\n',
      '.gitignore': 'dist/\n',
      'dist/a.js': '',
    })
    const repository = openTestRepository(folder.root)
    repository.git('init', '-q', '-b', 'main')
    repository.commit('Begin')
    for (const name of ['hikidashi.json', '.mcp.json'])
      await cp(join(examples, 'claude-code', name), join(folder.root, name))
    const { mcpServers } = JSON.parse(await readFile(join(folder.root, '.mcp.json'), 'utf8'))
    const { command, args } = mcpServers.project
    // The installed command: `npx` would not find the package as long as it is in no registry.
    expect(command).toBe('hikidashi')
    const given: readonly string[] = args
    // The host starts it in the folder of the project.
    const client = await connect([main, ...given.map((one) => (one.endsWith('.json') ? join(folder.root, one) : one))])
    const { resources } = await client.listResources()
    const uris = resources.map(({ uri }) => uri)
    expect(uris).toContain('file:///project/README.md')
    expect(uris).not.toContain('file:///project/dist/a.js')
    const { contents } = await client.readResource({ uri: 'git://project/log' })
    expect(JSON.stringify(contents)).toContain('Begin')
    await client.close()
    const checked = await runHere(['check'], { cwd: folder.root })
    expect(checked).toMatchObject({ code: 0 })
  })
})

describe('examples/team-server', () => {
  const servers: AuthorizationServer[] = []
  afterAll(() => Promise.all(servers.map((server) => server.stop())))

  test('shows signed-in users the resources of their group, and writes a read to the audit log without the content', async () => {
    for (const method of ['warn', 'info', 'log'] as const) vi.spyOn(console, method).mockImplementation(() => {})
    const groups = { ada: ['finance-team'], bob: [] }
    const issuer = await startAuthorizationServer({ scopes: ['context', 'finance:read'], groups })
    servers.push(issuer)
    await cp(join(examples, 'team-server'), folder.root, { recursive: true })
    // What the README says to fill in: where people sign in, and where hosts find this.
    const port = await freePort()
    const url = `http://127.0.0.1:${port}/mcp`
    const file = join(folder.root, 'hikidashi.json')
    const written = readFileSync(file, 'utf8')
      .replace('https://login.example.org/realms/work/protocol/openid-connect/certs', issuer.jwks)
      .replace('https://login.example.org/realms/work', issuer.issuer)
      .replace('https://context.example.org/mcp', url)
      .replace('127.0.0.1:8787', `127.0.0.1:${port}`)
    expect(parse(written).http.auth.issuers[0].issuer).toBe(issuer.issuer)
    await writeFile(file, written)
    const server = start(['serve', '--config', file], { cwd: folder.root })
    await server.says(/\/mcp\n/)

    const ada = await connectAs('ada', url, 'auto')
    const budget = await ada.with((client) => client.readResource({ uri: 'docs://finance/budget.md' }))
    expect(JSON.stringify(budget)).toContain('141,250')
    await ada.close()
    const bob = await connectAs('bob', url, 'auto')
    const { resources } = await bob.client.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual([
      'hikidashi://overview',
      'docs://handbook/onboarding.md',
      'search://team/status.json',
    ])
    await bob.close()
    server.child.kill('SIGTERM')
    await server.ended
    const audit = await readFile(join(folder.root, 'audit.jsonl'), 'utf8')
    expect(audit).toContain('docs://finance/budget.md')
    expect(audit).not.toContain('141,250')
    vi.restoreAllMocks()
  })
})

describe('examples/japanese-docs', () => {
  test('finds words of two characters and of one, in three encodings', async () => {
    await cp(join(examples, 'japanese-docs'), folder.root, { recursive: true })
    const search = async (words: string) => {
      const { code, out } = await runHere(['search', words, '--json'], { cwd: folder.root })
      expect(code).toBe(0)
      const { hits } = JSON.parse(out) as { readonly hits: readonly { readonly document: string }[] }
      return hits.map(({ document }) => decodeURIComponent(document))
    }
    expect((await search('休暇'))[0]).toBe('docs://kitei/就業規則.md')
    expect((await search('出張'))[0]).toBe('docs://kitei/旅費規程.txt')
    expect(await search('税')).toEqual(['docs://kitei/勘定科目.csv'])
    const { out } = await runHere(['read', 'docs://kitei/旅費規程.txt'], { cwd: folder.root })
    expect(out).toContain('第3条 日当は、宿泊を伴う出張について一日2,500円とする。')
  })
})

describe('examples/provider.ts', () => {
  test('serves a source that hikidashi does not have, in 30 lines', async () => {
    const file = join(examples, 'provider.ts')
    expect(readFileSync(file, 'utf8').split('\n').length).toBeLessThanOrEqual(31)
    const client = await connect([...tsx, file])
    const { resources } = await client.listResources()
    expect(resources.map(({ uri }) => uri)).toContain('time://now/Asia/Tokyo')
    const { contents } = await client.readResource({ uri: 'time://now/Asia/Tokyo' })
    expect(contents[0]).toMatchObject({ text: expect.stringContaining('GMT+9') })
    await expect(client.readResource({ uri: 'time://now/Moon/Tranquility' })).rejects.toThrow()
    await client.close()
  })
})

describe('examples/agent.ts', () => {
  test('answers with the output of a model for the context that it assembled', async () => {
    const bodies: string[] = []
    const model = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      bodies.push(body)
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ choices: [{ message: { content: 'Three days before.' } }] }))
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => model.once('listening', resolve))
    const { port } = model.address() as AddressInfo
    const serve = `${process.execPath} ${main} serve --config ${join(examples, 'japanese-docs/hikidashi.json')} --stdio`
    const command = ['--command', serve, '--budget', '1000', '出張の手続きは']
    const { spawn } = await import('node:child_process')
    const child = spawn(process.execPath, [...tsx, join(examples, 'agent.ts'), ...command], {
      env: { ...process.env, OPENAI_BASE_URL: `http://127.0.0.1:${port}`, HIKIDASHI_STATE: folder.outside },
    })
    let out = ''
    let err = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
    await new Promise((resolve) => child.once('close', resolve))
    model.close()
    expect(out, err).toBe('Three days before.\n')
    const { messages } = JSON.parse(bodies[0] ?? '{}')
    expect(messages[1].content).toContain('出発の3日前までに')
    expect(Number(/(\d+) tokens in all/.exec(err)?.[1])).toBeLessThanOrEqual(1000)
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
