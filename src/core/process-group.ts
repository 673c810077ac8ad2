import { setTimeout as sleep } from 'node:timers/promises'
import { createMemberList, memoryOf } from './process-members.ts'

/** A command that leads a session of its own (`spawn` with `detached`), and the processes that it has started. Not for Windows. */
export interface ProcessGroup {
  /**
   * Sends a signal to every process of the group. On Linux these are the processes of the session and their descendants, elsewhere
   * those of the process group.
   */
  signal(name: 'SIGTERM' | 'SIGKILL'): void
  /** Sends a SIGTERM to every process that runs, and two seconds later a SIGKILL to what is left. */
  end(): Promise<void>
}

export interface MemoryLimit {
  /** How much memory the processes of a group may hold together, in bytes. */
  readonly memoryBytes: number
  /** Called once, when they hold more, before they get a SIGKILL. */
  readonly onExceeded: (usedBytes: number) => void
}

/** How often the memory of a group is looked at. */
const lookIntervalMs = 500
/** How long processes may take to end after a SIGTERM, and how often they are looked at meanwhile. */
const termTimeoutMs = 2000
const termIntervalMs = 50

/** The groups that have not been ended. They get a SIGTERM when this process exits. */
const groups = new Set<ProcessGroup>()

/**
 * Watches the processes of a command until they are ended.
 *
 * The memory limit holds on Linux, where `/proc` tells what processes hold. It is not one of setrlimit(2): RLIMIT_AS counts addresses,
 * of which V8, Go and Java reserve far more than they use, and each limit is one of a single process.
 *
 * @param pid The command, which leads the session.
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

  if (members !== undefined) {
    let isLooking = false
    const look = async () => {
      if (isLooking) return
      isLooking = true
      const usedBytes = await memoryOf(members.recent(), memoryBytes)
      isLooking = false
      if (usedBytes <= memoryBytes || !groups.has(group)) return
      clearInterval(timer)
      onExceeded(usedBytes)
      group.signal('SIGKILL')
    }
    timer = setInterval(() => void look(), lookIntervalMs).unref()
  }
  if (groups.size === 0) process.on('exit', endAll)
  groups.add(group)
  return group
}

function endAll(): void {
  for (const group of groups) group.signal('SIGTERM')
}

/** Whether a signal was sent. The signal 0 only asks whether one could be. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}
