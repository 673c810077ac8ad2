import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { eras } from '../support/era-clients.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { requires } from '../support/require.ts'

vi.setConfig({ testTimeout: 120_000 })

const root = fileURLToPath(new URL('../..', import.meta.url))
const frameworks = join(root, 'conformance/node_modules')
const needed = ['express', 'fastify', 'hono', '@hono/node-server']
const missing = needed.filter((name) => !existsSync(join(frameworks, name)))
const suite = requires(
  'frameworks',
  missing.length === 0,
  `${missing.join(', ')} not installed: run npm ci --prefix conformance`,
)

let folder: Folder
const children: ChildProcess[] = []

/** The examples as somebody else has them: copied out, beside the installed packages. */
beforeAll(() => {
  folder = createFolder()
  // With a package.json of its own, whichever lies above the folder of temporary files.
  folder.write({ 'hello.md': '# Hello\n', 'package.json': '{"private":true}' })
  cpSync(join(root, 'examples/mounted'), folder.root, { recursive: true })
  const modules = join(folder.root, 'node_modules')
  mkdirSync(join(modules, '@hono'), { recursive: true })
  for (const name of needed.filter((one) => existsSync(join(frameworks, one))))
    symlinkSync(join(frameworks, name), join(modules, name))
  symlinkSync(root, join(modules, 'hikidashi'))
})
afterEach(async () => {
  for (const child of children.splice(0)) {
    const ended = once(child, 'exit')
    child.kill()
    await ended
  }
})
afterAll(() => {
  delete process.env.MCP_KEY
  folder.remove()
})

async function startExample(file: string): Promise<string> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  const env = { ...process.env, PORT: String(port) }
  const child = spawn(process.execPath, [file], { cwd: folder.root, env, stdio: ['ignore', 'ignore', 'pipe'] })
  children.push(child)
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const url = `http://127.0.0.1:${port}`
  await expect
    .poll(
      async () => {
        if (child.exitCode !== null) throw new Error(said)
        return fetch(url).then((answer) => answer.text())
      },
      { timeout: 60_000 },
    )
    .toBe('the application')
  return url
}

test('examples/mounted has five examples of applications that mount hikidashi', () => {
  expect(readdirSync(join(root, 'examples/mounted')).filter((name) => name.endsWith('.mjs'))).toHaveLength(5)
})

suite('an application that mounts hikidashi', () => {
  for (const name of ['express', 'fastify', 'hono'])
    test(`as in the example of ${name}, serves resources beside its own pages to the official clients, and refuses a foreign Origin`, async () => {
      const url = await startExample(`${name}.mjs`)
      for (const era of eras.filter((one) => one.revision !== '2024-11-05')) {
        const { client, revision } = await era.connect({ url: `${url}/mcp` })
        expect(revision).toBe(era.revision)
        expect((await client.listResources()).resources.map(({ uri }) => uri)).toContain('docs://manual/hello.md')
        const { contents } = await client.readResource({ uri: 'docs://manual/hello.md' })
        expect(contents).toMatchObject([{ text: '# Hello\n' }])
        await client.close()
      }
      const evil = await fetch(`${url}/mcp`, {
        method: 'POST',
        headers: { Origin: 'https://evil.example' },
        body: '{}',
      })
      expect(evil.status).toBe(403)
    })
})

test('the example for Next.js answers only requests with the configured key', async () => {
  process.env.MCP_KEY = 'the key'
  const cwd = process.cwd()
  process.chdir(folder.root)
  const route = (await import(pathToFileURL(join(folder.root, 'next.mjs')).href).finally(() => process.chdir(cwd))) as {
    readonly POST: (request: Request) => Promise<Response>
    readonly GET: (request: Request) => Promise<Response>
    readonly DELETE: (request: Request) => Promise<Response>
    readonly runtime: string
  }
  expect(route.runtime).toBe('nodejs')
  const connect = async (key: string) => {
    const answer = (input: string | URL | Request, init?: RequestInit) => {
      const request = new Request(input, init)
      return route[request.method as 'GET' | 'POST' | 'DELETE'](request)
    }
    const requestInit = { headers: { Authorization: `Bearer ${key}` } }
    const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode: 'auto' } })
    await client.connect(
      new StreamableHTTPClientTransport(new URL('http://localhost:3000/mcp'), { fetch: answer, requestInit }),
    )
    return client
  }
  const client = await connect('the key')
  const { contents } = await client.readResource({ uri: 'docs://manual/hello.md' })
  expect(contents).toMatchObject([{ text: '# Hello\n' }])
  await client.close()
  await expect(connect('another key')).rejects.toThrow()
})
