import { defined } from '../../core/kit/defined.ts'
import type { Log } from '../../core/log.ts'
import { addOverHttp, addOverStdio, type Server } from '../hosts/how-to-add.ts'
import { count } from '../terminal/format.ts'
import { packageVersion } from './version.ts'

/** Announces that a server runs: to a person, how to use it; to a log collector, one event. */
export interface Announcer {
  /** On stdio, started by a person. */
  waiting(): void
  /** On stdio, started by a host. */
  started(log: Log): void
  /** Over HTTP, with the URL of the explorer, if there is one. */
  listening(url: string, page: string | undefined): void
}

export interface AnnouncerOptions {
  readonly say: (text: string) => void
  /** Log for events, if stderr is read by programs. */
  readonly log: Log | undefined
  readonly server: Server
  /** Addresses of the mounts. */
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
    listening: (url, page) => {
      if (log !== undefined) return event(log, 'serving over HTTP', { url, ...defined({ page }) })
      const explore = page === undefined ? [] : ['', `Explore it in a browser: ${page}`]
      sentences(`at ${url}`, ...explore, '', addOverHttp({ ...server, url }), '', 'Ctrl-C stops it.')
    },
  }
}
