import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { compareSamples } from './kolmogorov-smirnov.ts'
import { initialize } from './rpc.ts'
import { fixed, median, progress, table } from './support.ts'

// Tests whether response times distinguish denied resources from missing ones, for files and git, over stdio and HTTP. One client requests
// both of a pair in turns. The Kolmogorov-Smirnov test compares the times.

const { values: given } = parseArgs({ options: { samples: { type: 'string', default: '500' } } })
const samples = Number(given.samples)
const least = 0.01

interface Question {
  readonly what: string
  readonly method: string
  /** Parameters of the request for the denied resource, and of the request with which it is compared. */
  readonly params: readonly [Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>]
}

type Ask = (method: string, params: Readonly<Record<string, unknown>>) => Promise<{ ms: number; error: boolean }>

interface Client {
  readonly ask: Ask
  close(): Promise<void>
}

const uriPair = (denied: string, other: string) => [{ uri: denied }, { uri: other }] as const
const completion = (address: string, template: string, name: string, value: string) => ({
  ref: { type: 'ref/resource', uri: `${address}/${template}` },
  argument: { name, value },
})

function questions(address: string, template: string, head: string): readonly Question[] {
  const at = (path: string) => `${address}/${head}${path}`
  const read = 'resources/read'
  const directory = 'resources/directory/read'
  return [
    { what: 'read: a denied file of 4 MB', method: read, params: uriPair(at('open/big.key'), at('open/abc.txt')) },
    { what: 'read: a small one in a denied folder', method: read, params: uriPair(at('shut/a.txt'), at('none/a.txt')) },
    { what: 'read: a denied folder of 2,000 files', method: read, params: uriPair(at('shut'), at('none')) },
    { what: 'directory: that folder', method: directory, params: uriPair(at('shut/'), at('none/')) },
    { what: 'directory: a denied file', method: directory, params: uriPair(at('open/big.key'), at('open/abc.txt')) },
    {
      what: 'completion: in that folder',
      method: 'completion/complete',
      params: [
        completion(address, template, 'path', `${head}shut/f`),
        completion(address, template, 'path', `${head}none/f`),
      ],
    },
    {
      // The rules alone refuse a denied URI. A URI that does not exist yet can be subscribed to.
      what: 'subscribe: denied and there, denied and not there',
      method: 'resources/subscribe',
      params: uriPair(at('shut/a.txt'), at('shut/z.txt')),
    },
  ]
}

function makeSources(folder: string): void {
  const root = join(folder, 'tree')
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  put('open/a.txt', 'a\n')
  put('open/big.key', 'k'.repeat(4 * 1024 * 1024))
  put('shut/a.txt', 'a\n')
  for (let i = 0; i < 2000; i++) put(`shut/f${i}.txt`, `${i}\n`)
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-C', root, '-c', 'user.name=b', '-c', 'user.email=b@example.org', ...args], {
      stdio: 'ignore',
    })
  git('init', '-b', 'main')
  git('add', '.')
  git('commit', '-m', 'all')
  const deny = (head: string) => [
    { allow: ['*'] },
    { deny: ['*'], match: [`/${head}shut/**`, `/${head}shut`, '**/*.key'] },
  ]
  const config = {
    mounts: {
      'file:///tree': { provider: 'files', root, defaultExcludes: false, exclude: ['.git/'], access: deny('') },
      'git://tree': { provider: 'git', repository: root, access: deny('HEAD/') },
    },
  }
  writeFileSync(join(folder, 'hikidashi.json'), JSON.stringify(config))
}

function start(folder: string, ...args: readonly string[]): ChildProcess {
  const main = join(import.meta.dirname, '../src/cli/main.ts')
  const words = ['serve', '--config', join(folder, 'hikidashi.json'), '--log-level', 'error', ...args]
  return spawn(process.execPath, ['--import', 'tsx', main, ...words], { stdio: ['pipe', 'pipe', 'pipe'] })
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.stdin?.end()
  child.kill('SIGTERM')
  await ended
}

async function openStdio(folder: string): Promise<Client> {
  const child = start(folder, '--stdio')
  child.stderr?.resume()
  const waiting = new Map<number, (line: string) => void>()
  createInterface({ input: child.stdout as NonNullable<typeof child.stdout> }).on('line', (line) => {
    const id = Number(/"id":(\d+)/.exec(line)?.[1])
    waiting.get(id)?.(line)
    waiting.delete(id)
  })
  let next = 1
  const ask: Ask = async (method, params) => {
    const id = next++
    const answered = new Promise<string>((resolve) => waiting.set(id, resolve))
    const begun = performance.now()
    child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    const line = await answered
    return { ms: performance.now() - begun, error: line.includes('"error"') }
  }
  await ask('initialize', initialize)
  return { ask, close: () => stop(child) }
}

async function openHttp(folder: string): Promise<Client> {
  const child = start(folder, '--http', '0')
  const url = await new Promise<string>((resolve) => {
    let text = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const found = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(text)?.[0]
      if (found !== undefined) resolve(found)
    })
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let session: Record<string, string> = {}
  let next = 1
  const post = (body: string) =>
    new Promise<{ ms: number; text: string; session: string }>((resolve, reject) => {
      const begun = performance.now()
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...session }
      const outgoing = request(url, { method: 'POST', agent, headers }, (incoming) => {
        let text = ''
        incoming.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        incoming.on('end', () => {
          resolve({ ms: performance.now() - begun, text, session: String(incoming.headers['mcp-session-id'] ?? '') })
        })
      })
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  const call = (method: string, params: object) => post(JSON.stringify({ jsonrpc: '2.0', id: next++, method, params }))
  session = { 'mcp-session-id': (await call('initialize', initialize)).session }
  return {
    ask: async (method, params) => {
      const { ms, text } = await call(method, params)
      return { ms, error: text.includes('"error"') }
    },
    close: async () => {
      agent.destroy()
      await stop(child)
    },
  }
}

async function sample(ask: Ask, { method, params }: Question, count: number) {
  const times: [number[], number[]] = [[], []]
  const outcomes = new Set<boolean>()
  for (let i = -20; i < count; i++) {
    // The order within a turn is random, so that neither of the two benefits from it.
    const order = Math.random() < 0.5 ? ([0, 1] as const) : ([1, 0] as const)
    for (const which of order) {
      const { ms, error } = await ask(method, params[which])
      outcomes.add(error)
      if (i >= 0) times[which].push(ms)
    }
  }
  if (outcomes.size !== 1) throw new Error(`${method}: the two are not even answered alike`)
  return times
}

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-denied-'))
const rows: (string | number)[][] = []
let told = 0
try {
  makeSources(folder)
  for (const [transport, open] of [
    ['stdio', openStdio],
    ['HTTP', openHttp],
  ] as const) {
    const client = await open(folder)
    for (const [source, asked] of [
      ['files', questions('file:///tree', '{+path}', '')],
      ['git', questions('git://tree', '{+ref}/{+path}', 'HEAD/')],
    ] as const)
      for (const question of asked) {
        progress(`${transport}, ${source}: ${question.what} …`)
        let [denied, other] = await sample(client.ask, question, samples)
        let { p } = compareSamples(denied, other)
        const again = p < least
        if (again) {
          // One of many comparisons may fall below the limit by chance, but hardly again with twice the samples.
          ;[denied, other] = await sample(client.ask, question, samples * 2)
          p = compareSamples(denied, other).p
        }
        if (p < least) told++
        rows.push([
          transport,
          source,
          question.what,
          fixed(median(denied) * 1000, 0),
          fixed(median(other) * 1000, 0),
          fixed(p, 3) + (again ? ' (second time)' : ''),
        ])
      }
    await client.close()
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
const head = ['over', 'source', 'what is asked', 'denied, µs (median)', 'absent, µs (median)', 'p']
process.stdout.write(`${table(head, rows)}\n`)
if (told > 0) {
  progress(`${told} of ${rows.length} can be told apart (p < ${least})`)
  process.exitCode = 1
}
