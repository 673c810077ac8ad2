import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { fixed, median, progress, table } from './support.ts'

// Measures the transfer of a file of 256 MiB by its signed link, and as base64 in an answer with raised limits, beside a bare server that
// pipes the same file. Each server is a process of its own, and they run in turns. The server lists its resources first, so that the
// mount is open. During the transfer, small requests are sent repeatedly, and the server measures the longest pause of its event loop.
// The first argument is the number of rounds.

const rounds = Number(process.argv[2] ?? 5)
const size = 256 * 2 ** 20
const folder = mkdtempSync(join(tmpdir(), 'hikidashi-bench-content-'))
const file = join(folder, 'large.bin')
for (let at = 0; at < size; at += 2 ** 24) appendFileSync(file, randomBytes(2 ** 24))

/** Code for every server: it prints the longest pause of the event loop since the last signal. */
const monitor = `
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { writeSync } from 'node:fs'
const delays = monitorEventLoopDelay({ resolution: 1 })
delays.enable()
process.on('SIGUSR2', () => {
  writeSync(2, 'longest pause ' + delays.max / 1e6 + '\\n')
  delays.reset()
})`
const monitored = ['--import', `data:text/javascript,${encodeURIComponent(monitor)}`]

const bare = `
const { createReadStream, statSync } = require('node:fs')
const size = statSync(process.argv[1]).size
require('node:http').createServer((request, response) => {
  if (request.url === '/healthz') return response.end('ok')
  response.writeHead(200, { 'content-length': size })
  createReadStream(process.argv[1]).pipe(response)
}).listen(0, '127.0.0.1', function () { console.error('http://127.0.0.1:' + this.address().port + '/mcp') })`

interface Server {
  readonly child: ChildProcess
  readonly lines: Interface
  readonly url: string
}

async function startServer(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Server> {
  const own = { ...process.env, ...env }
  const child = spawn(process.execPath, [...monitored, ...args], { stdio: ['ignore', 'ignore', 'pipe'], env: own })
  const lines = createInterface(child.stderr)
  return { child, lines, url: await said(lines, /http:\/\/127\.0\.0\.1:\d+\/mcp/) }
}

/** Resolves to the part of a line that matches. */
function said(lines: Interface, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    const onLine = (line: string) => {
      const [part] = pattern.exec(line) ?? []
      if (part === undefined) return
      lines.off('line', onLine)
      resolve(part)
    }
    lines.on('line', onLine).once('close', () => reject(new Error('The server has ended.')))
  })
}

/** Returns the longest pause of a server's event loop since the last call, in milliseconds. */
async function longestPauseOf({ child, lines }: Server): Promise<number> {
  const pause = said(lines, /(?<=^longest pause )[\d.]+$/)
  child.kill('SIGUSR2')
  return Number(await pause)
}

/** A configuration whose limits allow the whole file in an answer. */
const settings = join(mkdtempSync(join(tmpdir(), 'hikidashi-bench-settings-')), 'hikidashi.json')
writeFileSync(
  settings,
  JSON.stringify({
    mounts: { [`file://${folder}`]: { provider: 'files', root: folder, maxBytes: '256MiB' } },
    http: { listen: '127.0.0.1:0', limits: { answer: '512MiB' } },
  }),
)

/** A bucket with the same number of bytes, in a process of its own. */
const bucket = spawn(
  process.execPath,
  ['--import', 'tsx', join(import.meta.dirname, 'servers/s3.ts'), '0', String(size)],
  {
    stdio: ['pipe', 'pipe', 'inherit'],
  },
)
const [line] = (await once(createInterface(bucket.stdout), 'line')) as [string]
const place = JSON.parse(line) as {
  url: string
  bucket: string
  keys: { accessKeyId: string; secretAccessKey: string }
}
const bucketUri = `s3://${place.bucket}`
const bucketSettings = join(folder, '..', `hikidashi-bench-bucket-${process.pid}.json`)
writeFileSync(
  bucketSettings,
  JSON.stringify({
    mounts: {
      [bucketUri]: {
        ...{ provider: 's3', bucket: place.bucket, endpoint: place.url, maxBytes: '256MiB' },
        ...{ accessKeyId: { env: 'BENCH_KEY' }, secretAccessKey: { env: 'BENCH_SECRET' } },
      },
    },
    http: { listen: '127.0.0.1:0', limits: { answer: '512MiB' } },
  }),
)
/** The keys, only for the server of the bucket, because a server searches everything that it sends for its known secrets. */
const keys = { BENCH_KEY: place.keys.accessKeyId, BENCH_SECRET: place.keys.secretAccessKey }

const inAnswer = 'hikidashi, in the answer'
const ofBucket = 'hikidashi, of a bucket, in the answer'
const serverOf = {
  bare: () => startServer(['-e', bare, file]),
  hikidashi: () => startServer(['dist/cli/main.js', 'serve', folder, '--only', 'files', '--http', '0']),
  [inAnswer]: () => startServer(['dist/cli/main.js', 'serve', '--config', settings]),
  [ofBucket]: () => startServer(['dist/cli/main.js', 'serve', '--config', bucketSettings], keys),
}

const cpuOf = ({ pid }: ChildProcess): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}
const peakOf = ({ pid }: ChildProcess): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

function askFor(url: string, uri = `file://${file}`): Promise<Response> {
  return askTo(url, 'resources/read', { uri })
}

async function askTo(url: string, method: string, params: { readonly uri?: string }): Promise<Response> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  return fetch(url, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ 'mcp-protocol-version': '2026-07-28', 'mcp-method': method },
      ...(params.uri === undefined ? {} : { 'mcp-name': params.uri }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  })
}

async function hrefOf(url: string): Promise<string> {
  const { error } = (await (await askFor(url)).json()) as { error: { data: { link: { href: string } } } }
  return error.data.link.href
}

const uriOf = { [inAnswer]: `file://${file}`, [ofBucket]: `${bucketUri}/large.bin` }

async function measureOne(name: keyof typeof serverOf) {
  const server = await serverOf[name]()
  const { child, url } = server
  try {
    if (name !== 'bare') await (await askTo(url, 'resources/list', {})).text()
    const href = name === 'hikidashi' ? await hrefOf(url) : new URL('/', url).href
    await longestPauseOf(server)
    const cpu = cpuOf(child)
    let isOver = false
    let slowest = 0
    const small = (async () => {
      while (!isOver) {
        const begun = performance.now()
        await (await fetch(new URL('/healthz', url))).text()
        slowest = Math.max(slowest, performance.now() - begun)
      }
    })()
    const begun = performance.now()
    let first: number | undefined
    let length = 0
    const { body } = name === inAnswer || name === ofBucket ? await askFor(url, uriOf[name]) : await fetch(href)
    for await (const chunk of body ?? []) {
      first ??= performance.now() - begun
      length += chunk.length
    }
    const ms = performance.now() - begun
    isOver = true
    await small
    if (name === inAnswer || name === ofBucket ? length < (size / 3) * 4 : length !== size)
      throw new Error(`${length} bytes came.`)
    const pause = await longestPauseOf(server)
    return { first: first ?? 0, ms, cpu: cpuOf(child) - cpu, peak: peakOf(child), slowest, pause }
  } finally {
    child.kill()
  }
}

const names = ['bare', 'hikidashi', inAnswer, ofBucket] as const
const measured = {
  bare: [] as Awaited<ReturnType<typeof measureOne>>[],
  hikidashi: [] as Awaited<ReturnType<typeof measureOne>>[],
  [inAnswer]: [] as Awaited<ReturnType<typeof measureOne>>[],
  [ofBucket]: [] as Awaited<ReturnType<typeof measureOne>>[],
}
for (let round = 0; round < rounds; round++) {
  progress(`round ${round + 1} of ${rounds}`)
  for (const name of names) measured[name].push(await measureOne(name))
}
bucket.stdin.end()
rmSync(bucketSettings)
rmSync(folder, { recursive: true })
const of = (name: keyof typeof measured, key: keyof Awaited<ReturnType<typeof measureOne>>) =>
  median(measured[name].map((one) => one[key]))
console.log(
  table(
    [
      ...['256 MiB', 'first byte, ms', 'all, ms', 'CPU, s', 'peak memory, MiB', 'slowest small request meanwhile, ms'],
      'longest pause of the loop, ms',
    ],
    names.map((name) => [
      name,
      ...[fixed(of(name, 'first')), fixed(of(name, 'ms'), 0), fixed(of(name, 'cpu'), 2), fixed(of(name, 'peak'), 0)],
      ...[fixed(of(name, 'slowest')), fixed(of(name, 'pause'))],
    ]),
  ),
)
