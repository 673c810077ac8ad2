import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

export interface Process {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly session: number
  /** When it began, in ticks since the machine did: a later process with the same id is another one. */
  readonly started: string
}

/** The processes of a session and their descendants, as `/proc` of Linux tells them (proc(5)). */
export interface MemberList {
  /** The members that ran when all processes were last looked at: one to ten seconds ago at most. */
  recent(): readonly Process[]
  /**
   * The members that run just now. Zombies are none. A process that is named once is named until it has ended, also where its
   * parent has ended before it. Reads a file of each process of the machine.
   */
  now(): readonly Process[]
}

/** The pause behind a look at all processes, as a multiple of the time that the look took. */
const pauseTimes = 100
const [shortestPauseMs, longestPauseMs] = [1000, 10_000]

/** The last look at all processes. All lists share it. */
let seen: readonly Process[] = []
let seenAtMs = Number.NEGATIVE_INFINITY
let notBeforeMs = Number.NEGATIVE_INFINITY

/**
 * Linux only.
 *
 * @param leader The process that leads the session. It has begun it already.
 */
export function createMemberList(leader: number): MemberList {
  const createdAtMs = performance.now()
  /** When each of the processes began that were named by `now`. */
  let named = new Map<number, string>()

  const membersOf = (processes: readonly Process[]): readonly Process[] => {
    const children = new Map<number, Process[]>()
    for (const one of processes) children.set(one.parent, [...(children.get(one.parent) ?? []), one])
    const members = new Map<number, Process>()
    const add = (one: Process) => {
      if (members.has(one.pid)) return
      members.set(one.pid, one)
      for (const child of children.get(one.pid) ?? []) add(child)
    }
    for (const one of processes) if (one.session === leader || named.get(one.pid) === one.started) add(one)
    return [...members.values()]
  }
  return {
    recent: () => {
      const isFresh = performance.now() < notBeforeMs && seenAtMs >= createdAtMs
      return membersOf(isFresh ? seen : lookAtAll())
    },
    now: () => {
      const members = membersOf(lookAtAll())
      named = new Map(members.map(({ pid, started }) => [pid, started]))
      return members
    },
  }
}

function lookAtAll(): readonly Process[] {
  seenAtMs = performance.now()
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  seen = ids.flatMap((id) => readProcess(Number(id)) ?? [])
  const nowMs = performance.now()
  notBeforeMs = nowMs + Math.min(longestPauseMs, Math.max(shortestPauseMs, pauseTimes * (nowMs - seenAtMs)))
  return seen
}

/** `undefined` for a process that has ended. */
function readProcess(pid: number): Process | undefined {
  const stat = textOf(pid, 'stat')
  // The second field is the name of the program in parentheses. It may hold blanks and parentheses itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, parent, group, session] = fields
  if (stat === '' || state === 'Z' || state === 'X') return undefined
  const started = fields[22 - 3] ?? ''
  return { pid, parent: Number(parent), group: Number(group), session: Number(session), started }
}

/**
 * The memory that processes hold together, in bytes. An answer up to the limit may be too high: memory that several processes
 * share is counted for each of them. An answer over the limit counts it once.
 */
export async function memoryOf(processes: readonly Process[], limitBytes: number): Promise<number> {
  const resident = processes.map(({ pid }) => bytesOf(textOf(pid, 'status'), 'VmRSS') ?? 0)
  if (sum(resident) <= limitBytes) return sum(resident)
  // The kernel goes through all pages of a process for its share, which takes milliseconds: not on this thread. It tells nothing of
  // the processes of other users.
  const shares = processes.map(async ({ pid }, index) => {
    const text = await readFile(`/proc/${pid}/smaps_rollup`, 'latin1').catch(() => '')
    return bytesOf(text, 'Pss') ?? resident[index] ?? 0
  })
  return sum(await Promise.all(shares))
}

/** A file of a process. Empty where the process has ended. */
function textOf(pid: number, file: 'stat' | 'status'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    return ''
  }
}

/** The value of a line such as `VmRSS:   1234 kB`, in bytes. The unit is always KiB (proc(5)). */
function bytesOf(text: string, name: string): number | undefined {
  const kibibytes = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1]
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
