import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { modernHeaders } from './attack-http.ts'
import { type Target, until } from './attack-target.ts'
import { withMeta } from './attack-wire.ts'
import { controlPath, type World } from './attack-world.ts'

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

/** @param settled The sockets, by inode, that can be no outgoing connection; added to. To be kept for the next time. */
export function holdingsOf(pid: number, settled: Set<string> = new Set()): Holdings {
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

/**
 * Connections of a process that do not come in at a port which it listens on. The tables of TCP take the system milliseconds to
 * write, so they are read only when there is a socket that is not settled yet.
 */
function outgoingOf(pid: number, inodes: readonly string[], settled: Set<string>): readonly string[] {
  const areUnsettled = () => inodes.some((inode) => !settled.has(inode))
  if (!areUnsettled()) return []
  for (const line of textOf(`/proc/${pid}/net/unix`).split('\n')) settled.add(line.split(/\s+/)[6] ?? '')
  if (!areUnsettled()) return []
  const own = new Set(inodes)
  const sockets = ['tcp', 'tcp6']
    .flatMap((table) => textOf(`/proc/${pid}/net/${table}`).split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .map(([, local = '', remote = '', state = '', , , , , , inode = '']) => ({ local, remote, state, inode }))
    .filter(({ inode }) => own.has(inode))
  const port = (address: string) => address.slice(address.lastIndexOf(':'))
  const listening = new Set(sockets.filter(({ state }) => state === '0A').map(({ local }) => port(local)))
  const isIncoming = ({ local }: { readonly local: string }) => listening.has(port(local))
  for (const socket of sockets) if (isIncoming(socket)) settled.add(socket.inode)
  // 01 is established, 02 a connection that was asked for.
  return sockets
    .filter((socket) => (socket.state === '01' || socket.state === '02') && !isIncoming(socket))
    .map(({ remote }) => remote)
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
  const { work: most = 1000, programs = [], upstreams = () => [] } = options
  const slack = { ...usual, ...options.slack }
  const living = () => targets.filter((target) => target.isAlive())
  const settled = new Map(targets.map((target) => [target, new Set<string>()]))
  const before = new Map(targets.map((target) => [target, holdingsOf(target.pid, settled.get(target))]))
  const seen = new Set<string>()
  const mayRun = new Set(programs)

  const isUpstream = (remote: string) =>
    upstreams().some((port) => remote === `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`)

  const watch = () => {
    for (const target of living()) {
      let now: Holdings
      try {
        now = holdingsOf(target.pid, settled.get(target))
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
      every: 50,
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
