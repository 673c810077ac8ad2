import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { addToken } from '../src/server/auth/token-file.ts'
import { fixed, progress, table } from './support.ts'

// Measures many clients over HTTP, each with its own connection, that read from time to time: first alone, then beside a client that
// floods the server, reads slowly and sends huge bodies, and then alone again. `--quiet` runs without the misbehaving client, to
// show how much two calm measurements differ.

const { values: given } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    clients: { type: 'string', default: '1000' },
    quiet: { type: 'boolean', default: false },
    // Options of the misbehaving client, which is a separate process so that it does not delay the measured clients.
    misbehave: { type: 'string' },
    token: { type: 'string', default: '' },
    kinds: { type: 'string', default: 'flood,slow,bodies,headers' },
    rate: { type: 'string', default: '200' },
  },
})
const seconds = Number(given.seconds)
const clients = Number(given.clients)
/** Number of requests per second of all clients together, far below the capacity of the server. */
const perSecond = Number(given.rate)

const modern = '2026-07-28'
const envelope = {
  'io.modelcontextprotocol/protocolVersion': modern,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const headersOf = (method: string, token: string, uri?: string) => ({
  'content-type': 'application/json',
  'mcp-protocol-version': modern,
  'mcp-method': method,
  ...(uri === undefined ? {} : { 'mcp-name': uri }),
  authorization: `Bearer ${token}`,
})
const bodyOf = (method: string, params: object) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: envelope } })

interface Probe {
  readonly pause: number
  readonly p99: number
  readonly rss: number
}

interface Server {
  readonly url: URL
  readonly pid: number
  probe(): Promise<Probe>
  stop(): Promise<void>
}

let folder = ''
/** Whether `chrt` can start idle processes: Linux runs them only while no other process needs the processor. */
const hasChrt = spawnSync('chrt', ['--idle', '0', 'true']).status === 0
/** The built command, because a compiler of sources at run time would add to the heap. */
const main = join(import.meta.dirname, '../dist/cli/main.js')

async function startServer(): Promise<Server> {
  const probeScript = join(import.meta.dirname, 'probe.mjs')
  const words = ['serve', '--config', join(folder, 'hikidashi.json'), '--log-level', 'error', '--http', '0']
  const child: ChildProcess = spawn(process.execPath, ['--expose-gc', '--import', probeScript, main, ...words], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const probes: ((probe: Probe) => void)[] = []
  let text = ''
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`the server ended: ${text}`)))
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const found = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(text)?.[0]
      if (found !== undefined) resolve(found)
      for (const match of chunk.matchAll(/^probe (.*)$/gm)) probes.shift()?.(JSON.parse(match[1] ?? '{}') as Probe)
    })
  })
  return {
    url: new URL(url),
    pid: child.pid ?? 0,
    probe: async () => {
      const told = new Promise<Probe>((resolve) => probes.push(resolve))
      child.kill('SIGUSR2')
      return told
    },
    stop: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
    },
  }
}

const small = 'docs://all/small.txt'
const big = 'docs://all/big.txt'

/** One client: a connection, and a token that it shares with a few others. */
interface Client {
  read(): Promise<{ ms: number; status: number }>
  close(): void
}

function createClient(url: URL, token: string): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const body = bodyOf('resources/read', { uri: small })
  const headers = { ...headersOf('resources/read', token, small), 'content-length': Buffer.byteLength(body) }
  return {
    read: () =>
      new Promise((resolve) => {
        const begun = performance.now()
        const done = (status: number) => resolve({ ms: performance.now() - begun, status })
        const outgoing = request(url, { method: 'POST', agent, headers }, (incoming) => {
          incoming.resume().on('end', () => done(incoming.statusCode ?? 0))
        })
        outgoing.on('error', () => done(0))
        outgoing.end(body)
      }),
    close: () => agent.destroy(),
  }
}

interface Measured {
  readonly times: readonly number[]
  readonly failed: number
}

/** Lets the clients read in turn at a fixed rate, regardless of answers to the others. */
async function measure(all: readonly Client[], forMs: number): Promise<Measured> {
  const times: number[] = []
  const pending = new Set<Promise<void>>()
  const busy = new Set<Client>()
  let failed = 0
  let next = 0
  const end = performance.now() + forMs
  const begun = performance.now()
  for (let sent = 0; performance.now() < end; ) {
    const due = ((performance.now() - begun) / 1000) * perSecond
    for (; sent < due; sent++) {
      const client = all[next++ % all.length]
      // A client that still waits for its answer is skipped. Its wait is measured in full.
      if (client === undefined || busy.has(client)) continue
      busy.add(client)
      const task = client.read().then(({ ms, status }) => {
        busy.delete(client)
        if (status === 200) times.push(ms)
        else failed++
      })
      pending.add(task)
      void task.then(() => pending.delete(task))
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await Promise.all(pending)
  return { times, failed }
}

/** Starts the misbehaving client. Resolves to a function that stops it, and resolves to the number of requests that it has begun. */
async function startMisbehaving(url: URL, token: string): Promise<() => Promise<string>> {
  const words = [
    '--import',
    'tsx',
    join(import.meta.dirname, 'abuse.ts'),
    '--misbehave',
    url.href,
    '--token',
    token,
    '--kinds',
    given.kinds,
  ]
  // In practice this client has its own machine, so here it gets only idle time. The lowest priority would not suffice, because a process
  // with it keeps the processor until its time slice ends.
  const [command, ...before] = hasChrt ? ['chrt', '--idle', '0', process.execPath] : [process.execPath]
  const child = spawn(command ?? process.execPath, [...before, ...words], { stdio: ['ignore', 'pipe', 'inherit'] })
  if (child.pid !== undefined) setPriority(child.pid, 19)
  const ended = new Promise((resolve) => child.once('exit', resolve))
  let said = ''
  const started = new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
      resolve()
    })
  })
  await started
  return async () => {
    child.kill('SIGTERM')
    await ended
    return said.trim().split('\n').at(-1) ?? ''
  }
}

/** Misbehaves in the chosen ways until the process is stopped. */
function misbehave(url: URL, token: string): void {
  let sent = 0
  const sockets = new Set<Socket>()
  const head = (method: string, uri: string | undefined, length: number) =>
    Object.entries({ host: url.host, ...headersOf(method, token, uri), 'content-length': length })
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')
  const post = (method: string, params: { readonly uri?: string }) => {
    const body = bodyOf(method, params)
    return `POST ${url.pathname} HTTP/1.1\r\n${head(method, params.uri, Buffer.byteLength(body))}\r\n${body}`
  }
  const open = (use: (socket: Socket) => void): void => {
    const socket = connect(Number(url.port), url.hostname)
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('connect', () => use(socket))
    // Connect again after the server has closed the connection.
    socket.on('close', () => {
      sockets.delete(socket)
      setTimeout(() => open(use), 20)
    })
  }
  /** Sends as many requests on one connection as it accepts, and discards the answers. */
  const flood = (socket: Socket) => {
    const requests = [post('resources/read', { uri: small }), post('resources/list', {})]
    const write = () => {
      while (!socket.destroyed) {
        sent++
        if (!socket.write(requests[sent % requests.length] ?? '')) return
        if (sent % 64 === 0) return void setImmediate(write)
      }
    }
    socket.resume().on('drain', write)
    write()
  }
  /** Requests large answers, and does not read them. */
  const readSlowly = (socket: Socket) => {
    socket.pause()
    sent++
    socket.write(post('resources/read', { uri: big }))
  }
  /** Sends a body without an end, with an announced length or in chunks. */
  const sendHugeBody = (announced: boolean) => (socket: Socket) => {
    const length = announced ? { 'content-length': 1e12 } : { 'transfer-encoding': 'chunked' }
    const lines = Object.entries({ host: url.host, ...headersOf('resources/read', token, small), ...length })
    sent++
    socket.write(
      `POST ${url.pathname} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
    )
    const piece = Buffer.alloc(64 * 1024, 0x20)
    const chunk = announced ? piece : Buffer.concat([Buffer.from('10000\r\n'), piece, Buffer.from('\r\n')])
    const write = () => {
      if (socket.destroyed) return
      if (socket.write(chunk)) setImmediate(write)
    }
    socket.resume().on('drain', write)
    write()
  }
  /** Sends headers that never end, one byte every half second. */
  const dribble = (socket: Socket) => {
    sent++
    socket.write(`POST ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\nx-slow: `)
    const timer = setInterval(() => socket.write('x'), 500)
    socket.resume().on('close', () => clearInterval(timer))
  }
  const kinds = given.kinds.split(',')
  const ways: readonly (readonly [string, number, (i: number) => (socket: Socket) => void])[] = [
    ['flood', 8, () => flood],
    ['slow', 20, () => readSlowly],
    ['bodies', 4, (i) => sendHugeBody(i % 2 === 0)],
    ['headers', 20, () => dribble],
  ]
  for (const [kind, count, way] of ways) if (kinds.includes(kind)) for (let i = 0; i < count; i++) open(way(i))
  // Keep the process alive, because paused connections do not.
  setInterval(() => {}, 60_000)
  process.stdout.write('begun\n')
  process.once('SIGTERM', () => process.stdout.write(`${sent}\n`, () => process.exit()))
}

const percentile = (values: readonly number[], share: number) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN
const megabytes = (bytes: number) => fixed(bytes / 1024 / 1024, 0)
/** CPU time of a process so far, in seconds (Linux). */
const processorOf = (pid: number) => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) / 100
  } catch {
    return Number.NaN
  }
}
/** CPU time that this virtual machine needed so far, and the part that the host gave to others, in hundredths of a second (Linux). */
const machineOf = () => {
  try {
    const fields = readFileSync('/proc/stat', 'latin1').split('\n')[0]?.split(/\s+/).slice(1, 9).map(Number) ?? []
    const [user = 0, nice = 0, system = 0, , , irq = 0, soft = 0, stolen = 0] = fields
    return { wanted: user + nice + system + irq + soft + stolen, stolen }
  } catch {
    return { wanted: Number.NaN, stolen: Number.NaN }
  }
}
const descriptorsOf = (pid: number) => {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return Number.NaN
  }
}

async function run(): Promise<boolean> {
  folder = mkdtempSync(join(tmpdir(), 'hikidashi-abuse-'))
  mkdirSync(join(folder, 'files'))
  writeFileSync(join(folder, 'files/small.txt'), 'x'.repeat(1024))
  writeFileSync(join(folder, 'files/big.txt'), 'y'.repeat(8 * 1024 * 1024))
  const tokenFile = join(folder, 'tokens.json')
  const tokens: string[] = []
  for (let i = 0; i < 51; i++) tokens.push((await addToken(tokenFile, { roles: ['reader'] })).token)
  const config = {
    mounts: { 'docs://all': { provider: 'files', root: 'files' } },
    http: { auth: { tokens: 'tokens.json' }, limits: { connections: clients + 1024 } },
  }
  writeFileSync(join(folder, 'hikidashi.json'), JSON.stringify(config))
  const server = await startServer()
  const [bad = '', ...good] = tokens
  const all = Array.from({ length: clients }, (_, i) => createClient(server.url, good[i % good.length] ?? ''))
  const rows: (string | number)[][] = []
  let [processor, machine] = [0, machineOf()]
  const begin = async () => {
    await server.probe()
    processor = processorOf(server.pid)
    machine = machineOf()
  }
  const row = (what: string, { times, failed }: Measured, { p99, pause, rss }: Probe) => {
    const [p50, p99Of] = [percentile(times, 0.5), percentile(times, 0.99)]
    const { wanted, stolen } = machineOf()
    const share = (stolen - machine.stolen) / (wanted - machine.wanted)
    rows.push([
      ...[what, times.length, failed, fixed(p50), fixed(p99Of), fixed(Math.max(...times)), fixed(p99), fixed(pause, 0)],
      ...[fixed(processorOf(server.pid) - processor), fixed(share * 100, 0), megabytes(rss), descriptorsOf(server.pid)],
    ])
  }
  try {
    progress('warming up …')
    // Open the connection of every client before the measurement.
    for (let i = 0; i < all.length; i += 50) await Promise.all(all.slice(i, i + 50).map((client) => client.read()))
    await measure(all, Math.min(5, seconds) * 1000)
    await begin()
    progress(`calm, ${seconds} s …`)
    const calm = await measure(all, seconds * 1000)
    const before = await server.probe()
    row('calm', calm, before)
    const descriptors = descriptorsOf(server.pid)
    await begin()
    progress(`beside one that misbehaves, ${seconds} s …`)
    const stop = given.quiet ? undefined : await startMisbehaving(server.url, bad)
    const beside = await measure(all, seconds * 1000)
    row(given.quiet ? 'no less calm' : 'beside one that misbehaves', beside, await server.probe())
    progress(`it has begun ${(await stop?.()) ?? 0} requests`)
    progress(`calm again, ${seconds} s …`)
    await measure(all, 10_000)
    await begin()
    const after = await measure(all, seconds * 1000)
    row('calm again', after, await server.probe())
    const head = ['', 'answers', 'failed', 'p50, ms', 'p99, ms', 'longest, ms']
    const more = [
      'event loop p99, ms',
      'longest pause, ms',
      'processor, s',
      'stolen, %',
      'memory (RSS), MB',
      'descriptors',
    ]
    process.stdout.write(`${table([...head, ...more], rows)}\n`)
    // Compare with the better of the two calm phases, because the speed of a shared machine varies.
    const calmP99 = Math.min(percentile(calm.times, 0.99), percentile(after.times, 0.99))
    const ratio = percentile(beside.times, 0.99) / calmP99
    const holds =
      ratio <= 2 && calm.failed + beside.failed + after.failed === 0 && descriptorsOf(server.pid) <= descriptors
    progress(
      `p99 beside it is ${fixed(ratio, 2)} times that of calm; ${holds ? 'all holds' : 'something does NOT hold'}`,
    )
    return holds
  } finally {
    for (const client of all) client.close()
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

if (given.misbehave !== undefined) misbehave(new URL(given.misbehave), given.token)
else if (!(await run())) process.exitCode = 1
