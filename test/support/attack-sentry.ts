import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { modernHeaders } from './attack-http.ts'
import { type Target, until } from './attack-target.ts'
import { withMeta } from './attack-wire.ts'
import { controlPath, type World } from './attack-world.ts'
import { volume } from './volume.ts'

/** What the system says that a process holds, and does beside answering. */
export interface Holdings {
  readonly descriptors: number
  readonly threads: number
  /** Watches of inotify. */
  readonly watches: number
  /** Resident memory, in MiB. */
  readonly resident: number
  /** The programs that it started, by name. */
  readonly children: readonly string[]
  /** Where it has connections to that it opened itself, as `address:port` in the hexadecimal of the system. */
  readonly outgoing: readonly string[]
  /** The files that it has open to write. */
  readonly writing: readonly string[]
}

/** Sockets by inode, each with where it leads if it is an outgoing connection. The inode of a socket is its own while it is open. */
type Settled = Map<string, string | undefined>

/**
 * @param settled The sockets of which it is known what they are; added to. To be kept for the next time.
 * @param tables What was read of the system for another process at the same time.
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
      // The number may be another's by now; and a directory is written to by nobody.
      .filter(({ fd, link }) => linkOf(`/proc/${pid}/fd/${fd}`) === link && !isDirectory(link))
      .map(({ link }) => link),
  }
}

const flagsOf = (info: string) => /^flags:\s+(\d+)/m.exec(info)?.[1] ?? '0'

function childrenOf(pid: number): readonly string[] {
  return namesIn(`/proc/${pid}/task`)
    .flatMap((task) => textOf(`/proc/${pid}/task/${task}/children`).split(' '))
    .filter((child) => child !== '')
    .map((child) => textOf(`/proc/${child}/comm`).trim())
    .filter((name) => name !== '')
}

interface Socket {
  readonly local: string
  readonly remote: string
  /** As the system writes it: 01 is established, 02 a connection that was asked for, 07 closed, 0A a port that is listened on. */
  readonly state: string
}

/** The sockets of TCP by their inodes, for each network that processes are in. */
type Tables = Map<string, ReadonlyMap<string, Socket>>

function socketsOf(pid: number, tables: Tables): ReadonlyMap<string, Socket> {
  const network = linkOf(`/proc/${pid}/ns/net`)
  const known = tables.get(network)
  if (known !== undefined) return known
  const sockets = new Map<string, Socket>()
  for (const table of ['tcp', 'tcp6'])
    for (const line of textOf(`/proc/${pid}/net/${table}`).split('\n').slice(1)) {
      const [, local = '', remote = '', state = '', , , , , , inode = '0'] = line.trim().split(/\s+/)
      // The inode 0 is of connections that no process has any longer.
      if (inode !== '0') sockets.set(inode, { local, remote, state })
    }
  tables.set(network, sockets)
  return sockets
}

/**
 * Connections of a process that do not come in at a port which it listens on. The tables of TCP take the system milliseconds to
 * write, so they are read only when there is a socket that is not settled yet, and once for all processes.
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
    // A connection that is being closed does not come back.
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

/** How a server behaves while it is attacked, beside what it answers (oracles O2, O3 and O4). */
export interface Sentry {
  /** What was wrong since it was last asked: for after each case. */
  look(): Promise<readonly string[]>
  /** Stops, and answers what is left over when everything is closed, compared with the beginning: for the end. */
  settle(): Promise<readonly string[]>
}

export interface SentryOptions {
  /**
   * For how long a server may be at work, in milliseconds, while one read of the control client waits; O2. What counts is
   * its work and not the time, so that a machine which is busy with something else is not taken for a server that hangs;
   * what hangs without any work is told by the tests themselves, which wait for answers.
   */
  readonly work?: number
  /** What may be left over beyond what there was in the beginning; O3. */
  readonly slack?: Partial<Slack>
  /** How long it is waited for what is left over to be given back, in milliseconds; O3. By default ten seconds. */
  readonly settlesWithin?: number
  /** The programs that a server may start; O4. */
  readonly programs?: readonly string[]
  /** The ports of this machine that a server is told to ask; O4. They are known once it was started. */
  readonly upstreams?: () => readonly number[]
}

type Slack = Pick<Holdings, 'descriptors' | 'threads' | 'watches' | 'resident'>

/** Threads that were started meanwhile, with what they hold open, and what an allocator keeps. */
const usual: Slack = { descriptors: 16, threads: 8, watches: 64, resident: 400 }

/** Starts to watch servers, of which one may serve HTTP. What they hold now is what they are compared with. */
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
  /** Each control read, the one that is waited for too: its time, and the work of the server in it, in milliseconds. */
  readonly waits: readonly { readonly time: number; readonly work: number }[]
  readonly faults: readonly string[]
}

/** Reads a file of 1 KiB every 50 ms over a connection of its own. */
function openPulse(world: World, target: Target): { report(): Promise<Beat>; stop(): Promise<void> } {
  const params = { uri: `${world.address}/${controlPath}` }
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 'pulse',
    method: 'resources/read',
    params: withMeta(params, true),
  })
  const worker = new Worker(join(import.meta.dirname, 'attack-pulse.mjs'), {
    workerData: {
      url: String(target.url),
      pid: target.pid,
      headers: modernHeaders('resources/read', params),
      body,
      expected: 'still here',
      // In a tenth of its volume it finds what takes a second all the same.
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
