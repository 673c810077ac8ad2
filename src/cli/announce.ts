import type { Log } from '../core/log.ts'
import { count } from './format.ts'
import { addOverHttp, addOverStdio, type Server } from './hosts.ts'
import { packageVersion } from './version.ts'

/** Tells that a server is up: a person, how to use it; a program that collects the log, one event. */
export interface Announcer {
  /** On stdio, started by a person. */
  waiting(): void
  /** On stdio, started by a host. */
  started(log: Log): void
  /** Over HTTP. */
  listening(url: string): void
}

export interface AnnouncerOptions {
  readonly say: (text: string) => void
  /** Where events go, if stderr is for programs. */
  readonly log: Log | undefined
  readonly server: Server
  /** What is mounted. */
  readonly addresses: readonly string[]
  /** Whether the current folder is served because nothing else was named. */
  readonly assumed: boolean
}

const noConfig = 'there is no hikidashi.json here: the current folder is served'

export function createAnnouncer({ say, log, server, addresses, assumed }: AnnouncerOptions): Announcer {
  const sentences = (where: string, ...more: readonly string[]) => {
    const headline = `hikidashi ${packageVersion()} serves ${count(addresses.length, 'mount')} ${where}`
    const mounts = addresses.map((address) => `  ${address}`)
    say([...(assumed ? [`Note: ${noConfig}.`] : []), headline, ...mounts, ...more].join('\n'))
  }
  const event = (to: Log, message: string, fields: Readonly<Record<string, unknown>>) => {
    if (assumed) to('info', noConfig)
    to('info', message, { ...fields, mounts: addresses })
  }
  const started = (to: Log) => event(to, 'serving on stdio', {})
  return {
    started,
    waiting: () => {
      if (log !== undefined) return started(log)
      const ends = 'Or serve it over HTTP: --http 8787. Ctrl-C stops it.'
      sentences('on stdin and stdout, and waits for a client', '', addOverStdio(server), '', ends)
    },
    listening: (url) => {
      if (log !== undefined) return event(log, 'serving over HTTP', { url })
      sentences(`at ${url}`, '', addOverHttp({ ...server, url }), '', 'Ctrl-C stops it.')
    },
  }
}
