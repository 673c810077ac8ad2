import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/** A command that leads its own session (`spawn` with `detached`), and the processes that it has started. Not for Windows. */
export interface ProcessGroup {
  /**
   * Sends a signal to the processes of the group. On Linux these are the processes of the session and their
   * descendants, elsewhere those of the process group.
   */
  signal(name: 'SIGTERM' | 'SIGKILL'): void
  /** Sends a SIGTERM to the processes of the group, and two seconds later a SIGKILL to those that still run. */
  end(): Promise<void>
}

export interface MemoryLimit {
  /** Maximum memory of all processes of a group together, in bytes. */
  readonly memoryBytes: number
  /** Called once when the processes of the group exceed the limit, before they get a SIGKILL. */
  readonly onExceeded: (usedBytes: number) => void
}

/** Period of the memory checks of a group on Linux. */
const lookIntervalMs = 500
/** Period of these checks on systems where each check starts a process. */
const startedLookIntervalMs = 2000
/** How long processes may take to end after a SIGTERM. */
const termTimeoutMs = 2000
/** Period of the checks whether they have ended. */
const termIntervalMs = 50

const groups = new Set<ProcessGroup>()

/**
 * The limit is not one of setrlimit(2): RLIMIT_AS counts addresses, of which V8, Go and Java reserve far more than they
 * use, and such a limit applies to a single process.
 * @param pid Process id of the command, which leads the session.
 */
export function watchGroup(pid: number, { memoryBytes, onExceeded }: MemoryLimit): ProcessGroup {
  const members = process.platform === 'linux' ? createMemberList(pid) : undefined
  let timer: NodeJS.Timeout | undefined
  let ending: Promise<void> | undefined

  const isRunning = () => (members === undefined ? send(-pid, 0) : members.now().length > 0)
  const group: ProcessGroup = {
    signal: (name) => {
      const others = members?.now().filter((member) => member.group !== pid) ?? []
      send(-pid, name)
      for (const other of others) send(other.pid, name)
    },
    end: () => {
      ending ??= end()
      return ending
    },
  }
  const end = async (): Promise<void> => {
    clearInterval(timer)
    if (isRunning()) {
      group.signal('SIGTERM')
      for (let waitedMs = 0; waitedMs < termTimeoutMs && isRunning(); waitedMs += termIntervalMs)
        await sleep(termIntervalMs)
      if (isRunning()) group.signal('SIGKILL')
    }
    groups.delete(group)
    if (groups.size === 0) process.off('exit', endAll)
  }

  let isLooking = false
  const look = async () => {
    if (isLooking) return
    isLooking = true
    const usedBytes =
      members === undefined
        ? groupMemoryIn(await ps('-A', '-o', 'pid=,ppid=,pgid=,rss='), pid)
        : await processMemoryBytes(members.recent(), memoryBytes)
    isLooking = false
    if (usedBytes <= memoryBytes || !groups.has(group)) return
    clearInterval(timer)
    onExceeded(usedBytes)
    group.signal('SIGKILL')
  }
  timer = setInterval(() => void look(), members === undefined ? startedLookIntervalMs : lookIntervalMs).unref()
  if (groups.size === 0) process.on('exit', endAll)
  groups.add(group)
  return group
}

function endAll(): void {
  for (const group of groups) group.signal('SIGTERM')
}

/** Returns whether the signal could be sent. The signal 0 only checks that a process exists. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

interface Process {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly session: number
  /** Start time, in clock ticks since the boot: it distinguishes a later process with the same id. */
  readonly started: string
}

/** Pause after a scan of all processes, as a multiple of the time that the scan took. */
const pauseTimes = 100
const [minPauseMs, maxPauseMs] = [1000, 10_000]

let previousProcesses: readonly Process[] = []
let seenAtMs = Number.NEGATIVE_INFINITY
let notBeforeMs = Number.NEGATIVE_INFINITY

/**
 * Creates the list of the processes of a session and their descendants, read from `/proc` of Linux (proc(5)).
 *
 * @param leader Process id of the session's leader. The session must have begun already.
 */
export function createMemberList(leader: number) {
  const createdAtMs = performance.now()
  /** Start times of the processes that the last call of `now` returned, by process id. */
  let names = new Map<number, string>()

  const membersOf = (processes: readonly Process[]): readonly Process[] => {
    const children = new Map<number, Process[]>()
    for (const one of processes) children.set(one.parent, [...(children.get(one.parent) ?? []), one])
    const members = new Map<number, Process>()
    const add = (one: Process) => {
      if (members.has(one.pid)) return
      members.set(one.pid, one)
      for (const child of children.get(one.pid) ?? []) add(child)
    }
    for (const one of processes) if (one.session === leader || names.get(one.pid) === one.started) add(one)
    return [...members.values()]
  }
  return {
    /** Returns the members at the last scan of all processes, which is at most ten seconds old. */
    recent: (): readonly Process[] => {
      const isFresh = performance.now() < notBeforeMs && seenAtMs >= createdAtMs
      return membersOf(isFresh ? previousProcesses : lookAtAll())
    },
    /**
     * Returns the members that run now, without zombies. A process that was returned before is found again even if its
     * parent has ended. Reads a file of each process of the machine.
     */
    now: (): readonly Process[] => {
      const members = membersOf(lookAtAll())
      names = new Map(members.map(({ pid, started }) => [pid, started]))
      return members
    },
  }
}

function lookAtAll(): readonly Process[] {
  seenAtMs = performance.now()
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  previousProcesses = ids.flatMap((id) => readProcess(Number(id)) ?? [])
  const nowMs = performance.now()
  notBeforeMs = nowMs + Math.min(maxPauseMs, Math.max(minPauseMs, pauseTimes * (nowMs - seenAtMs)))
  return previousProcesses
}

function readProcess(pid: number): Process | undefined {
  const stat = readProcFile(pid, 'stat')
  // The second field is the name of the program in parentheses. It may contain blanks and parentheses itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, parent, group, session] = fields
  if (stat === '' || state === 'Z' || state === 'X') return undefined
  const started = fields[22 - 3] ?? ''
  return { pid, parent: Number(parent), group: Number(group), session: Number(session), started }
}

/**
 * Returns the memory of several processes together, in bytes. Up to the limit, memory that processes share is counted
 * for each of them. Over the limit it is counted once, except that of processes of other users.
 */
export async function processMemoryBytes(processes: readonly Process[], limitBytes: number): Promise<number> {
  const resident = processes.map(({ pid }) => parseMemoryField(readProcFile(pid, 'status'), 'VmRSS') ?? 0)
  if (sum(resident) <= limitBytes) return sum(resident)
  // For the proportional share the kernel walks the pages of a process, which takes milliseconds: read off this thread.
  // The file is not readable for processes of other users.
  const shares = processes.map(async ({ pid }, index) => {
    const text = await readFile(`/proc/${pid}/smaps_rollup`, 'latin1').catch(() => '')
    return parseMemoryField(text, 'Pss') ?? resident[index] ?? 0
  })
  return sum(await Promise.all(shares))
}

/** Returns the resident memory of a process, in bytes. Undefined when the process has ended, and on Windows. */
export async function residentBytes(pid: number): Promise<number | undefined> {
  if (process.platform === 'win32') return undefined
  if (process.platform === 'linux') return parseMemoryField(readProcFile(pid, 'status'), 'VmRSS')
  const kibibytes = await ps('-o', 'rss=', '-p', String(pid))
  return kibibytes.trim() === '' ? undefined : Number(kibibytes) * 1024
}

function ps(...args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile('/bin/ps', args, { maxBuffer: 64 * 1024 * 1024 }, (error, output) => resolve(error === null ? output : ''))
  })
}

/**
 * Returns the resident memory of a process group and of the descendants of its members, in bytes. Memory that processes
 * share is counted for each of them.
 * @param listing Output of `ps -A -o pid=,ppid=,pgid=,rss=`, with the memory in KiB.
 */
export function groupMemoryIn(listing: string, group: number): number {
  const children = new Map<number, number[]>()
  const memory = new Map<number, number>()
  const rest: number[] = []
  for (const line of listing.split('\n')) {
    const [pid = 0, parent = 0, itsGroup = 0, kibibytes = 0] = line.trim().split(/\s+/).map(Number)
    if (!Number.isSafeInteger(pid) || pid === 0) continue
    memory.set(pid, kibibytes * 1024)
    children.set(parent, [...(children.get(parent) ?? []), pid])
    if (itsGroup === group) rest.push(pid)
  }
  const pids = new Set<number>()
  for (let pid = rest.pop(); pid !== undefined; pid = rest.pop()) {
    if (pids.has(pid)) continue
    pids.add(pid)
    rest.push(...(children.get(pid) ?? []))
  }
  return sum([...pids].map((pid) => memory.get(pid) ?? 0))
}

function readProcFile(pid: number, file: 'stat' | 'status'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    return ''
  }
}

/** Returns the value of a line such as `VmRSS:   1234 kB` (proc(5)), in bytes. */
function parseMemoryField(text: string, name: string): number | undefined {
  const kibibytes = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1]
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
