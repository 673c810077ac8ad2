import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { connect } from 'node:net'
import { notFound, type Provider } from '../../../src/index.ts'

/** The faults that a server can commit, by the name that is read at `fault://planted`. Each oracle has at least one. */
export const faults: Readonly<Record<string, (argument: string) => string | Promise<string>>> = {
  /** O1: returns a secret in an encoding. */
  tell: (encoding) => Buffer.from(process.env.API_TOKEN ?? '').toString(encoding as BufferEncoding),
  /** O1: logs a secret. */
  log: () => say(process.stderr, `${process.env.DATABASE_URL}`),
  /** O2: blocks the event loop for a number of milliseconds. */
  hold: (milliseconds) => {
    const before = process.cpuUsage()
    const worked = () => {
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1000
    }
    while (worked() < Number(milliseconds));
    return 'held'
  },
  /** O3: opens files without closing them. */
  open: (count) => {
    for (let i = 0; i < Number(count); i++) openSync('/dev/null', 'r')
    return 'opened'
  },
  /** O3: keeps a number of MiB in memory. */
  keep: (mebibytes) => {
    kept.push(Array.from({ length: Number(mebibytes) * 131_072 }, (_, i) => i + 0.5))
    return 'kept'
  },
  /** O4: starts a program that runs for a second. */
  start: () => {
    spawn('sleep', ['1'])
    return 'started'
  },
  /** O4: connects to a port of this machine. */
  connect: async (port) => {
    const socket = connect(Number(port), '127.0.0.1')
    await new Promise((resolve) => socket.once('connect', resolve))
    setTimeout(() => socket.destroy(), 1000)
    return 'connected'
  },
  /** O4: writes to a file in its home. */
  write: (file) => {
    const descriptor = openSync(`${process.env.HOME}/${file}`, 'w')
    setTimeout(() => closeSync(descriptor), 1000)
    return 'writes'
  },
  /** O5: writes text that is no message to the standard output. */
  print: (text) => say(process.stdout, text),
  /** O5: answers a request again. */
  answer: (id) => say(process.stdout, JSON.stringify({ jsonrpc: '2.0', id, result: {} })),
}

const kept: unknown[] = []

function say(stream: NodeJS.WriteStream, line: string): string {
  stream.write(`${line}\n`)
  return 'said'
}

/** A provider that commits the fault of the path `NAME/ARGUMENT`, and answers with a word. */
export function faulty(): Provider {
  return {
    async *list() {},
    read: async ({ path }) => {
      const [name = '', argument = ''] = path.split('/')
      const fault = Object.hasOwn(faults, name) ? faults[name] : undefined
      if (fault === undefined) throw notFound()
      return [{ text: await fault(argument) }]
    },
  }
}
