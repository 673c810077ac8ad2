import { readFileSync } from 'node:fs'
import { afterAll } from 'vitest'

/** The time that this process and the ones it started have kept processors at work, in seconds. */
function processorSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6 + childrenSeconds()
}

/** What the children that have ended took, with theirs. Other systems than Linux do not tell. */
function childrenSeconds(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    // After the name, which may hold spaces: the state is field 3; 16 and 17 are the children's time, in ticks.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond
  } catch {
    return 0
  }
}

/** USER_HZ, which is the same on all architectures that Node runs on. */
const ticksPerSecond = 100

const counted: unique symbol = Symbol.for('hikidashi: the processor time of this process that files before have taken')
const shared = globalThis as typeof globalThis & { [counted]?: number }

// Registered before the hooks of the file, this runs after them. The first file of a process is charged with its start.
// biome-ignore lint/correctness/noEmptyPattern: vitest reads the parameter, and takes a name in it for a fixture.
afterAll(({}, file) => {
  const now = processorSeconds()
  Object.assign(file.meta, { processorSeconds: now - (shared[counted] ?? 0) })
  shared[counted] = now
})
