import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { volume } from '../../support/volume.ts'
import { modernHeaders } from './http.ts'
import { type Target, until } from './target.ts'
import { withMeta } from './wire.ts'
import { controlPath, type World } from './world.ts'

/** The resources and activities of a process, as the system reports them. */
export interface Holdings {
  readonly descriptors: number
  readonly threads: number
  /** Number of inotify watches. */
  readonly watches: number
  /** Resident memory, in MiB. */
  readonly resident: number
  /** The names of the programs that it started. */
  readonly children: readonly string[]
  /** The remote addresses of its outgoing connections, as `address:port` in the hexadecimal notation of the system. */
  readonly outgoing: readonly string[]
  /** The files that it has open for writing. */
  readonly writing: readonly string[]
}

/** Sockets by inode, each with its remote address if it is an outgoing connection. An open socket keeps its inode. */
type Settled = Map<string, string | undefined>

/**
 * @param settled The sockets that are already classified; new ones are added. Pass it to the next call.
 * @param tables The tables of sockets that were read for another process at the same time.
 */
export function holdingsOf(pid: number, settled: Settled = new Map(), tables: Tables = new Map()): Holdings {
  const open = readdirSync(`/proc/${pid}/fd`).map((fd) => ({ fd, link: linkOf(`/proc/${pid}/fd/${fd}`) }))
  const about = (fd: string) => textOf(`/proc/${pid}/fdinfo/${fd}`)
  const status = textOf(`/proc/${pid}/status`)
  const number = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
  return {
    descriptors: open.length,
    threads: number('Threads'),
    watches: open
      .filter(({ link }) => link === 'anon_inode:inotify')
      .reduce((sum, { fd }) => sum + (about(fd).match(/^inotify wd:/gm)?.length ?? 0), 0),
    resident: number('VmRSS') / 1024,
    children: childrenOf(pid),
    outgoing: outgoingOf(
      pid,
      open.flatMap(({ link }) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []),
      settled,
      tables,
    ),
    writing: open
      .filter(({ fd, link }) => /^\/(?!dev\/)/.test(link) && (Number.parseInt(flagsOf(about(fd)), 8) & 3) !== 0)
      // The descriptor may have been reused meanwhile, and a directory cannot be written.
      .filter(({ fd, link }) => linkOf(`/proc/${pid}/fd/${fd}`) === link && !isDirectory(link))
      .map(({ link }) => link),
  }
}

const flagsOf = (info: string) => /^flags:\s+(\d+)/m.exec(info)?.[1] ?? '0'

/** Returns the name of the program of a process. The main thread of newer Nodes has another name than its program. */
function nameOf(pid: string): string {
  const name = textOf(`/proc/${pid}/comm`).trim()
  return name === 'MainThread' ? 'node' : name
}

function childrenOf(pid: number): readonly string[] {
  return namesIn(`/proc/${pid}/task`)
    .flatMap((task) => textOf(`/proc/${pid}/task/${task}/children`).split(' '))
    .filter((child) => child !== '')
    .map(nameOf)
    .filter((name) => name !== '')
}

interface Socket {
  readonly local: string
  readonly remote: string
  /** State in the notation of the system: 01 established, 02 connecting, 07 closed, 0A listening. */
  readonly state: string
}

/** TCP sockets by inode, for each network namespace. */
type Tables = Map<string, ReadonlyMap<string, Socket>>

function socketsOf(pid: number, tables: Tables): ReadonlyMap<string, Socket> {
  const network = linkOf(`/proc/${pid}/ns/net`)
  const known = tables.get(network)
  if (known !== undefined) return known
  const sockets = new Map<string, Socket>()
  for (const table of ['tcp', 'tcp6'])
    for (const line of textOf(`/proc/${pid}/net/${table}`).split('\n').slice(1)) {
      const [, local = '', remote = '', state = '', , , , , , inode = '0'] = line.trim().split(/\s+/)
      // Connections without a process have the inode 0.
      if (inode !== '0') sockets.set(inode, { local, remote, state })
    }
  tables.set(network, sockets)
  return sockets
}

/**
 * Returns the connections of a process that did not come in at one of its listening ports. Reading the tables of TCP takes
 * milliseconds, so they are read only if a socket is not classified yet, and once for all processes.
 */
function outgoingOf(pid: number, inodes: readonly string[], settled: Settled, tables: Tables): readonly string[] {
  const areUnsettled = () => inodes.some((inode) => !settled.has(inode))
  const leadsTo = () => inodes.flatMap((inode) => settled.get(inode) ?? [])
  if (!areUnsettled()) return leadsTo()
  for (const line of textOf(`/proc/${pid}/net/unix`).split('\n')) settled.set(line.split(/\s+/)[6] ?? '', undefined)
  if (!areUnsettled()) return leadsTo()
  const all = socketsOf(pid, tables)
  const own = inodes.flatMap((inode) => {
    const socket = all.get(inode)
    return socket === undefined ? [] : [{ ...socket, inode }]
  })
  const port = (address: string) => address.slice(address.lastIndexOf(':'))
  const listening = new Set(own.filter(({ state }) => state === '0A').map(({ local }) => port(local)))
  for (const { inode, local, remote, state } of own) {
    if (settled.has(inode) || state === '07') continue
    // A closing connection does not become open again.
    settled.set(inode, !listening.has(port(local)) && (state === '01' || state === '02') ? remote : undefined)
  }
  return leadsTo()
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return 'closed meanwhile'
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function namesIn(path: string): readonly string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

/** Checks the behaviour of servers under attack, besides their answers (oracles O2, O3 and O4). */
export interface Sentry {
  /** Returns the faults since the last call, after each case. */
  look(): Promise<readonly string[]>
  /** Stops, and returns the resources that are still in use after everything was closed, compared with the baseline. */
  settle(): Promise<readonly string[]>
}

export interface SentryOptions {
  /**
   * Maximum CPU time of the server while one read of the control client waits, in milliseconds (O2). CPU time is compared, not
   * elapsed time, so that other work of the machine does not count. Tests wait for answers themselves, and so notice a server
   * that hangs without using the CPU.
   */
  readonly work?: number
  /** Resources that may remain beyond the baseline (O3). */
  readonly slack?: Partial<Slack>
  /** Maximum time until resources are released, in milliseconds (O3). By default ten seconds. */
  readonly settlesWithin?: number
  /** The programs that a server may start; O4. */
  readonly programs?: readonly string[]
  /** The ports of this machine that a server may connect to (O4), known once their servers have started. */
  readonly upstreams?: () => readonly number[]
}

type Slack = Pick<Holdings, 'descriptors' | 'threads' | 'watches' | 'resident'>

/** The usual growth: threads that were started meanwhile with their descriptors, and memory of the allocator. */
const usual: Slack = { descriptors: 16, threads: 8, watches: 64, resident: 400 }

/** Starts to observe servers, at most one of them over HTTP. Their current resources are the baseline. */
export function openSentry(world: World, targets: readonly Target[], options: SentryOptions = {}): Sentry {
  const { work: most = 1000, settlesWithin, programs = [], upstreams = () => [] } = options
  const slack = { ...usual, ...options.slack }
  const living = () => targets.filter((target) => target.isAlive())
  const settled = new Map(targets.map((target) => [target, new Map<string, string | undefined>()]))
  const before = new Map(targets.map((target) => [target, holdingsOf(target.pid, settled.get(target))]))
  const seen = new Set<string>()
  const mayRun = new Set(programs)

  const isUpstream = (remote: string) =>
    upstreams().some((port) => remote === `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`)

  const watch = () => {
    const tables: Tables = new Map()
    for (const target of living()) {
      let now: Holdings
      try {
        now = holdingsOf(target.pid, settled.get(target), tables)
      } catch {
        continue
      }
      const known = before.get(target)
      for (const name of now.children) if (!mayRun.has(name)) seen.add(`O4: it started ${name}`)
      for (const remote of now.outgoing)
        if (!known?.outgoing.includes(remote) && !isUpstream(remote))
          seen.add(`O4: it opened a connection to ${remote}`)
      for (const file of now.writing) if (!known?.writing.includes(file)) seen.add(`O4: it writes to ${file}`)
    }
  }
  const timer = setInterval(watch, 500)
  const http = targets.find(({ url }) => url !== undefined)
  const pulse = http === undefined ? undefined : openPulse(world, http)

  const look: Sentry['look'] = async () => {
    watch()
    const faults = [...seen]
    seen.clear()
    const beat = http?.isAlive() ? await pulse?.report() : undefined
    if (beat !== undefined) {
      const worst = beat.waits.reduce((worse, wait) => (wait.work > worse.work ? wait : worse), { time: 0, work: 0 })
      if (worst.work > most)
        faults.push(
          `O2: the control client waited ${Math.round(worst.time)} ms, while the server worked for ${Math.round(worst.work)} ms`,
        )
      faults.push(...beat.faults.map((fault) => `O2: the control client got ${fault}`))
    }
    return faults
  }

  const settle: Sentry['settle'] = async () => {
    clearInterval(timer)
    await pulse?.stop()
    const faults: string[] = []
    for (const target of living()) {
      const { pid } = target
      const known = before.get(target) ?? holdingsOf(pid)
      const excess = (now: Holdings) =>
        (Object.keys(slack) as (keyof Slack)[])
          .filter((name) => now[name] > known[name] + slack[name])
          .map((name) => `O3: ${Math.round(now[name])} ${name}, ${Math.round(known[name])} before`)
      faults.push(
        ...(await until(
          () => excess(holdingsOf(pid)),
          (left) => left.length === 0,
          settlesWithin,
        )),
      )
    }
    return faults
  }
  return { look, settle }
}

interface Beat {
  /** Each control read, including the pending one: its duration, and the CPU time of the server during it, in milliseconds. */
  readonly waits: readonly { readonly time: number; readonly work: number }[]
  readonly faults: readonly string[]
}

/** Reads a file of 1 KiB every 50 ms over its own connection. */
function openPulse(world: World, target: Target): { report(): Promise<Beat>; stop(): Promise<void> } {
  const params = { uri: `${world.address}/${controlPath}` }
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 'pulse',
    method: 'resources/read',
    params: withMeta(params, true),
  })
  const worker = new Worker(join(import.meta.dirname, 'pulse.mjs'), {
    workerData: {
      url: String(target.url),
      pid: target.pid,
      headers: modernHeaders('resources/read', params),
      body,
      expected: 'still here',
      // In a tenth of the volume, a slower interval still finds a block of a second.
      every: volume < 1 ? 200 : 100,
    },
  })
  return {
    report: async () => {
      worker.postMessage('report')
      const [beat] = (await once(worker, 'message')) as [Beat]
      return beat
    },
    stop: async () => void (await worker.terminate()),
  }
}
