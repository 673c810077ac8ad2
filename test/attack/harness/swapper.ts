import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'

/** A process that swaps two names thousands of times a second. It pauses between them, so that it does not take a processor of its own. */
export interface Swapper {
  /** Returns a lower bound of the number of swaps. */
  swaps(): number
  stop(): Promise<void>
}

const withNode = `
const fs = require('fs')
const [a, b, spare] = process.argv.slice(1)
const pause = new Int32Array(new SharedArrayBuffer(4))
for (let n = 1; ; n++) {
  fs.renameSync(a, spare); fs.renameSync(b, a); fs.renameSync(spare, b)
  if (n % 100 === 0) fs.writeSync(1, '.')
  Atomics.wait(pause, 0, 0, 0.1)
}`

// renameat2(2) with RENAME_EXCHANGE: both names exist all the time, so twice as many attempts pass the first check.
const withPython = `
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
a, b = (os.fsencode(name) for name in sys.argv[1:3])
n = 0
while True:
    if libc.renameat2(-100, a, -100, b, 2) != 0: sys.exit(1)
    n += 1
    if n % 100 == 0: os.write(1, b'.')
    time.sleep(0.0001)
`

export const swapWays = ['rename', 'exchange'] as const
export type SwapWay = (typeof swapWays)[number]

/** Whether this machine has the programs for a way of swapping: Node for `rename`, Python for `exchange`. */
export function canSwap(way: SwapWay): boolean {
  if (way === 'rename') return true
  try {
    execFileSync('python3', ['-c', 'import ctypes; ctypes.CDLL(None).renameat2'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export async function startSwapping(way: SwapWay, a: string, b: string): Promise<Swapper> {
  const [command, args] = way === 'rename' ? [process.execPath, ['-e', withNode]] : ['python3', ['-c', withPython]]
  const child: ChildProcess = spawn(command, [...args, a, b, `${b}.spare`], { stdio: ['ignore', 'pipe', 'inherit'] })
  let dots = 0
  child.stdout?.on('data', (data: Buffer) => {
    dots += data.length
  })
  const exited = once(child, 'exit')
  while (dots === 0 && child.exitCode === null && child.signalCode === null)
    await new Promise((resolve) => setTimeout(resolve, 5))
  return {
    swaps: () => dots * 100,
    stop: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}
