import type pg from 'pg'
import { sleep } from '../../core/kit/abort.ts'
import { type Change, createNews } from '../news.ts'
import type { Server } from './server.ts'

/** First and longest pause before another connection is tried, in milliseconds (backoff). */
const retryMs = { first: 100, most: 2000 }
/** Interval at which an idle connection is checked, in milliseconds. */
const beatMs = 10_000

/** One connection that receives all notifications, as long as a listener exists. */
export interface Listening {
  watch(collection: string, signal: AbortSignal): Promise<AsyncIterable<Change>>
  close(): Promise<void>
}

/** @param lost Called when the connection is lost, and when it is back. */
export function createListening(server: Server, channel: string, told: (connected: boolean) => void): Listening {
  let running: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined
  /** Resolves when there is a connection, or when the first attempt has failed: later writes are then reported late. */
  let tried: Promise<void> = Promise.resolve()

  const news = createNews(() => {
    if (news.collections.length > 0 && running === undefined) begin()
    if (news.collections.length === 0 && running !== undefined) {
      running.stop.abort()
      running = undefined
    }
  })

  const begin = () => {
    const stop = new AbortController()
    let done = () => {}
    tried = new Promise((resolve) => {
      done = resolve
    })
    running = { stop, ended: run(stop.signal, done) }
  }

  const run = async (signal: AbortSignal, tried: () => void) => {
    let wait: number = retryMs.first
    for (let lost = false; !signal.aborted; ) {
      const connected = await hear(signal, () => {
        // Notifications in between are unknown.
        if (lost) {
          news.tellAll()
          told(true)
        }
        wait = retryMs.first
        tried()
      })
      tried()
      if (signal.aborted) return
      if (connected || !lost) told(false)
      lost = true
      await sleep(wait * (0.5 + Math.random()), signal)
      wait = Math.min(wait * 2, retryMs.most)
    }
  }

  /** Listens until the connection is lost. `false`: there was no connection. */
  const hear = async (signal: AbortSignal, ready: () => void): Promise<boolean> => {
    const client = server.connection()
    const over = new AbortController()
    const end = () => over.abort()
    client.on('error', end)
    client.on('end', end)
    signal.addEventListener('abort', end, { once: true })
    client.on('notification', ({ payload }) => tell(payload))
    try {
      await client.connect()
      await client.query(`listen ${client.escapeIdentifier(channel)}`)
      ready()
      await beat(client, over.signal)
      return true
    } catch {
      return false
    } finally {
      signal.removeEventListener('abort', end)
      client.end().catch(() => {})
    }
  }

  const tell = (payload: string | undefined) => {
    const { collection, keys } = parse(payload)
    if (collection === undefined) news.tellAll()
    else news.tell(collection, keys)
  }

  return {
    watch: async (collection, signal) => {
      const heard = news.listen(collection, signal)
      await tried
      return heard
    },
    close: async () => {
      const { ended } = running ?? {}
      news.close()
      await ended
    },
  }
}

async function beat(client: pg.Client, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(beatMs, signal)
    if (!signal.aborted) await client.query('select 1').catch(() => {})
  }
}

/** Parses the payload of a notification. Without a collection it is not from a store. */
function parse(payload = ''): { readonly collection?: string; readonly keys: Change } {
  try {
    const news = JSON.parse(payload) as { collection?: unknown; keys?: unknown }
    const keys = Array.isArray(news.keys) ? news.keys.map(String) : undefined
    return typeof news.collection === 'string' ? { collection: news.collection, keys } : { keys: undefined }
  } catch {
    return { keys: undefined }
  }
}
