import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { peersFolder } from '../peers.ts'
import type { Revision } from './client.ts'

const root = resolve(import.meta.dirname, '../..')

/** A server that serves one folder of files as resources over HTTP. */
export interface Contender {
  readonly name: string
  /** The program and its arguments, for a folder. */
  command(folder: string): readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** The protocol revision of the requests to the server. */
  readonly revision: Revision
  /** The URI of a file in the folder. */
  uriOf(folder: string, name: string): string
  /** Returns the URI by which a template reads a file. `undefined`: the server has no such template. */
  readonly templated?: (folder: string, name: string) => string
  /** Returns the template whose variable is completed, and the variable. `undefined`: the server does not complete. */
  readonly completed?: (folder: string) => { readonly template: string; readonly variable: string }
  /** Whether the server lists the files. */
  readonly lists: boolean
  /** Whether the server sends notifications of changed files. */
  readonly tells: boolean
  /** The URL of the server, if it does not print the URL to stderr. */
  readonly url?: string
}

const program = (name: string) => join(peersFolder, 'servers', `${name}.mjs`)
const docs = (_folder: string, name: string) => `bench://docs/${name}`
const anyOf = (_folder: string, name: string) => `bench://any/${name}`
const completedDocs = () => ({ template: 'bench://docs/{+name}', variable: 'name' })
const completedAny = () => ({ template: 'bench://any/{name}', variable: 'name' })

const hikidashi = {
  command: (folder: string) => [join(root, 'dist/cli/main.js'), 'serve', folder, '--only', 'files', '--http', '0'],
  uriOf: (folder: string, name: string) => pathToFileURL(join(folder, name)).href,
  templated: (folder: string, name: string) => `${pathToFileURL(join(folder, name)).href}?lines=1-1`,
  completed: (folder: string) => ({ template: `${pathToFileURL(folder).href}/{+path}`, variable: 'path' }),
  ...{ lists: true, tells: true },
}

const framework = (name: string) => ({ command: (folder: string) => [program(name), folder], uriOf: docs })

function freePort(): Promise<number> {
  return new Promise((found, failed) => {
    const server = createServer().once('error', failed)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => found(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

/** Returns all servers. The others are compared with the first one. */
export async function contenders(temporary: string): Promise<readonly Contender[]> {
  const [xmcpPort, everythingPort] = [await freePort(), await freePort()]
  const xmcp = join(peersFolder, 'xmcp')
  execFileSync(process.execPath, [join(peersFolder, 'node_modules/xmcp/dist/cli.js'), 'build'], {
    cwd: xmcp,
    env: { ...process.env, BENCH_PORT: String(xmcpPort) },
    stdio: 'ignore',
  })
  const built = join(xmcp, 'dist/http.js')
  if (!existsSync(built)) throw new Error('xmcp was not built.')
  const all: readonly Contender[] = [
    {
      ...{ ...framework('sdk-v2'), name: 'SDK 2', revision: '2026-07-28', lists: true, tells: true },
      ...{ templated: docs, completed: completedDocs },
    },
    { ...hikidashi, name: 'hikidashi', revision: '2026-07-28' },
    { ...hikidashi, name: 'hikidashi, a session', revision: '2025-11-25' },
    {
      ...{ ...framework('sdk-v1'), name: 'SDK 1, a session', revision: '2025-11-25', lists: true, tells: true },
      ...{ templated: docs, completed: completedDocs },
    },
    {
      ...{ ...framework('fastmcp'), name: 'fastmcp, a session', revision: '2025-11-25', lists: true, tells: true },
      ...{ templated: anyOf, completed: completedAny },
    },
    {
      ...{ ...framework('tmcp'), name: 'tmcp', revision: '2026-07-28', lists: true, tells: true },
      ...{ templated: docs, completed: completedDocs },
    },
    {
      ...{ ...framework('mcp-use'), name: 'mcp-use', revision: '2026-07-28', lists: true, tells: true },
      ...{ templated: anyOf, completed: completedAny },
    },
    {
      ...{ name: 'xmcp', revision: '2025-11-25', lists: false, tells: false },
      ...{ command: () => [built], uriOf: docs, templated: docs, url: `http://127.0.0.1:${xmcpPort}/mcp` },
      env: { BENCH_FOLDER: temporary },
    },
    {
      ...{ name: 'server-everything, a session', revision: '2025-11-25', lists: false, tells: false },
      command: () => [
        join(peersFolder, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'),
        'streamableHttp',
      ],
      env: { PORT: String(everythingPort) },
      url: `http://127.0.0.1:${everythingPort}/mcp`,
      // This server serves no folder, so the benchmark reads a short text that the server generates.
      uriOf: () => 'demo://resource/dynamic/text/1',
      templated: () => 'demo://resource/dynamic/text/1',
      completed: () => ({ template: 'demo://resource/dynamic/text/{resourceId}', variable: 'resourceId' }),
    },
  ]
  return all
}
