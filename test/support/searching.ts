import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import {
  type FoundQuery,
  parseSearchAnswer,
  parseSearchStatus,
  type SearchAnswer,
  type SearchStatus,
} from '../../src/core/search-answer.ts'
import { compileTemplate } from '../../src/core/template.ts'
import { eventually } from './authorized.ts'
import { main, type Running, start } from './cli.ts'
import { runHere } from './cli-here.ts'

export const docs = 'docs://all'
export const searchAddress = 'search://all'

/** Everything is visible for the role `boss`; files in `open/` for `reader` too. */
const access = [{ allow: ['boss'] }, { allow: ['reader'], match: ['open/**'] }]

/** The official client of a server with a search. */
export interface Searcher {
  readonly client: Client
  /** Returns the text at a URI. Throws the error of the client. */
  read(uri: string): Promise<string>
  find(query: string, rest?: Omit<FoundQuery, 'query'>): Promise<SearchAnswer>
  /** Returns the paths of the documents that a query finds. */
  paths(query: string, rest?: Omit<FoundQuery, 'query'>): Promise<readonly string[]>
  complete(name: string, value: string): Promise<{ readonly values: readonly string[] }>
  status(): Promise<SearchStatus | undefined>
  close(): Promise<void>
}

export interface Folder {
  readonly home: string
  write(files: Readonly<Record<string, string>>): Promise<void>
  /** Writes a configuration for each role of a local user. */
  configure(more?: Readonly<Record<string, unknown>>, rules?: readonly unknown[]): Promise<void>
  remove(): void
}

/** Creates a folder with documents in `docs`, and a configuration that searches them. */
export async function searchFolder(files: Readonly<Record<string, string>>): Promise<Folder> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-search-')))
  const write: Folder['write'] = async (more) => {
    for (const [path, text] of Object.entries(more)) {
      const file = join(home, 'docs', path)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, text)
    }
  }
  const configure: Folder['configure'] = async (more = {}, rules = access) => {
    const config = (roles: readonly string[]) => ({
      mounts: {
        [docs]: { provider: 'files', root: 'docs', access: rules },
        [searchAddress]: { provider: 'search', over: [docs], cache: { ttl: 1, scope: 'public' } },
      },
      store: { sqlite: 'store.sqlite' },
      roles,
      ...more,
    })
    const http = { listen: '127.0.0.1:0', auth: { tokens: 'tokens.json' } }
    await writeFile(join(home, 'hikidashi.json'), JSON.stringify({ ...config([]), http }))
    for (const role of ['reader', 'boss']) await writeFile(join(home, `${role}.json`), JSON.stringify(config([role])))
  }
  await mkdir(join(home, 'docs'))
  await write(files)
  await configure()
  return { home, write, configure, remove: () => rmSync(home, { recursive: true, force: true }) }
}

/** A server over HTTP that requires tokens. */
export interface Served {
  readonly url: string
  readonly running: Running
  /** Creates a token with these roles. */
  token(...roles: readonly string[]): Promise<string>
  stop(signal?: NodeJS.Signals): Promise<void>
}

export async function serveSearch(home: string): Promise<Served> {
  const running = start(['serve', '--config', 'hikidashi.json'], { cwd: home })
  const [, url = ''] = await running.says(/at (http:\S+)\n[\s\S]*Ctrl-C stops it/)
  return {
    url,
    running,
    token: async (...roles) => {
      const words = roles.flatMap((role) => ['--role', role])
      const { code, out, err } = await runHere(['token', 'add', ...words, '--config', 'hikidashi.json'], { cwd: home })
      if (code !== 0) throw new Error(err)
      return out.trim()
    },
    stop: async (signal = 'SIGTERM') => {
      running.child.kill(signal)
      await running.ended
    },
  }
}

export function overHttp(url: string, token: string): Promise<Searcher> {
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  return connected(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
}

/** Connects over stdio to a new server, which shares the index with the other servers of the folder. */
export function overStdio(home: string, role: 'reader' | 'boss'): Promise<Searcher> {
  const args = [main, 'serve', '--config', `${role}.json`, '--stdio']
  return connected(new StdioClientTransport({ command: process.execPath, args, cwd: home, stderr: 'ignore' }))
}

const template = compileTemplate(`${searchAddress}{?q,limit,mount,mime,since,minPriority,audience,path,after,fresh,as}`)

async function connected(transport: StdioClientTransport | StreamableHTTPClientTransport): Promise<Searcher> {
  const client = new Client({ name: 'searcher', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(transport)
  const read = async (uri: string): Promise<string> => {
    const { contents } = await client.readResource({ uri })
    const [content] = contents
    return content !== undefined && 'text' in content ? content.text : ''
  }
  const find: Searcher['find'] = async (query, rest = {}) => {
    const found = parseSearchAnswer(await read(template.expand({ q: query, ...rest })))
    if (found === undefined) throw new Error('this is no answer of a search')
    return found
  }
  return {
    client,
    read,
    find,
    paths: async (query, rest) => (await find(query, rest)).hits.map(({ document }) => document.slice(docs.length + 1)),
    complete: async (name, value) => {
      const { completion } = await client.complete({
        ref: { type: 'ref/resource', uri: template.text },
        argument: { name, value },
      })
      return completion
    },
    status: async () => parseSearchStatus(await read(`${searchAddress}/status.json`)),
    close: () => client.close(),
  }
}

/** Waits until everything is indexed. */
export async function indexed(searcher: Searcher): Promise<void> {
  await eventually(searcher.status, (status) => status?.mounts.every(({ state }) => state === 'current') === true)
}
