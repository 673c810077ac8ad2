import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fixed, median, progress, table } from './support.ts'

// A file of 256 MiB by its signed link, and as base64 in the answer to a read whose limits are raised, beside a bare server that pipes the same file,
// each in a process of its own, in turns. While
// it is sent, a small request is asked again and again: its slowest answer shows the pauses of the event loop. The first argument is
// the number of rounds.

const rounds = Number(process.argv[2] ?? 5)
const size = 256 * 2 ** 20
const folder = mkdtempSync(join(tmpdir(), 'hikidashi-bench-content-'))
const file = join(folder, 'large.bin')
for (let at = 0; at < size; at += 2 ** 24) appendFileSync(file, randomBytes(2 ** 24))

const bare = `
const { createReadStream, statSync } = require('node:fs')
const size = statSync(process.argv[1]).size
require('node:http').createServer((request, response) => {
  if (request.url === '/healthz') return response.end('ok')
  response.writeHead(200, { 'content-length': size })
  createReadStream(process.argv[1]).pipe(response)
}).listen(0, '127.0.0.1', function () { console.error('http://127.0.0.1:' + this.address().port + '/mcp') })`

async function startServer(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } })
  let said = ''
  for await (const chunk of child.stderr ?? []) {
    said += String(chunk)
    const [url] = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(said) ?? []
    if (url !== undefined) return { child, url }
  }
  throw new Error(`The server has ended: ${said}`)
}

/** A configuration that lets the whole file into an answer. */
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
/** For the server of the bucket alone: a known secret is searched in all that a server sends. */
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

async function askFor(url: string, uri = `file://${file}`): Promise<Response> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  return fetch(url, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'resources/read', 'mcp-name': uri },
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri, _meta } }),
  })
}

async function hrefOf(url: string): Promise<string> {
  const { error } = (await (await askFor(url)).json()) as { error: { data: { link: { href: string } } } }
  return error.data.link.href
}

const uriOf = { [inAnswer]: `file://${file}`, [ofBucket]: `${bucketUri}/large.bin` }

async function measureOne(name: keyof typeof serverOf) {
  const { child, url } = await serverOf[name]()
  try {
    const href = name === 'hikidashi' ? await hrefOf(url) : new URL('/', url).href
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
    return { first: first ?? 0, ms, cpu: cpuOf(child) - cpu, peak: peakOf(child), slowest }
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
    ['256 MiB', 'first byte, ms', 'all, ms', 'CPU, s', 'peak memory, MiB', 'slowest small request meanwhile, ms'],
    names.map((name) => [
      name,
      ...[fixed(of(name, 'first')), fixed(of(name, 'ms'), 0), fixed(of(name, 'cpu'), 2), fixed(of(name, 'peak'), 0)],
      fixed(of(name, 'slowest')),
    ]),
  ),
)
