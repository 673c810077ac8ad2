import { setTimeout as sleep } from 'node:timers/promises'
import { createMemberList, memoryOf } from './process-members.ts'

/** A command that leads its own session (`spawn` with `detached`), and the processes that it has started. Not for Windows. */
export interface ProcessGroup {
  /**
   * Sends a signal to every process of the group. On Linux these are the processes of the session and their descendants,
   * elsewhere those of the process group.
   */
  signal(name: 'SIGTERM' | 'SIGKILL'): void
  /** Sends a SIGTERM to every running process, and two seconds later a SIGKILL to those that remain. */
  end(): Promise<void>
}

export interface MemoryLimit {
  /** Maximum memory of all processes of a group together, in bytes. */
  readonly memoryBytes: number
  /** Called once when they exceed it, before they get a SIGKILL. */
  readonly onExceeded: (usedBytes: number) => void
}

/** Period of the memory checks of a group, in milliseconds. */
const lookIntervalMs = 500
/** How long processes may take to end after a SIGTERM, and the period of the checks meanwhile, in milliseconds. */
const termTimeoutMs = 2000
const termIntervalMs = 50

/** The groups that have not been ended. They get a SIGTERM when this process exits. */
const groups = new Set<ProcessGroup>()

/**
 * Watches the processes of a command until they are ended.
 *
 * The memory limit is enforced on Linux, where `/proc` shows the memory of processes. It is not a limit of setrlimit(2):
 * RLIMIT_AS counts addresses, of which V8, Go and Java reserve far more than they use, and each such limit applies to a single
 * process.
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

/** Sends a signal and returns whether that was possible. The signal 0 only checks that a process exists. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}
