import type { History, Random } from './history.ts'
import type { Line, Link, Message } from './link.ts'

/** What a client wants of the server. */
export interface Wishes {
  readonly uris: readonly string[]
  /** Those of them that it reads again whenever it is told of them. */
  readonly follows: readonly string[]
  /** Those of them that it never leaves. */
  readonly keeps: readonly string[]
  readonly list: boolean
}

export interface ClientOptions {
  readonly number: number
  readonly principal: string
  readonly history: History
  readonly random: Random
  /** Connects anew. */
  readonly connect: (stray: (message: Message) => void) => Promise<Link>
  /** What to ask for this time. */
  readonly wish: () => Wishes
  /** Called as soon as something is acknowledged. */
  readonly acknowledged: (uris: readonly string[]) => void
  /** The version that a text says, if it is whole. */
  readonly versionOf: (uri: string, text: string) => number | 'torn'
}

/** A client that is told of changes, and does to the server what clients do. Everything that it sees is recorded. */
export interface Client {
  readonly link: Link | undefined
  /** What it is told on, once everything that it asked for is acknowledged. */
  readonly stream: number | undefined
  readonly stalled: boolean
  /** What it does, for a report of a failure. */
  readonly state: string
  /** Whether something that it asked is unanswered. */
  readonly busy: boolean
  start(): Promise<void>
  /** Hangs up, and begins again from nothing. This and what follows is left undone while it begins. */
  restart(): Promise<void>
  /** Ends what it is told on, and asks for something else on the same connection. */
  change(): Promise<void>
  leave(): Promise<void>
  resume(): Promise<void>
  stall(): void
  flow(): void
  list(): Promise<void>
  /** How often it was told of a URI since it was asked last. */
  heard(uri: string): number
  /** Resolves when nothing that it asked is unanswered. */
  idle(): Promise<void>
  /** From now on it does not come back when the server ends what it is told on. */
  retire(): void
  close(): void
}

export function createClient(options: ClientOptions): Client {
  const { number, principal, history, random } = options
  let link: Link | undefined
  let line: Line | undefined
  let stream: number | undefined
  let wishes: Wishes = { uris: [], follows: [], keeps: [], list: false }
  /** Whether everything that was asked for is acknowledged. */
  let ready = false
  let stalled = false
  let closed = false
  let counts = new Map<string, number>()
  let listed = false
  const working = new Set<Promise<unknown>>()
  let resumed = 0
  /** The step of opening a stream that it is at. */
  let doing = ''
  /** What is to be read again once it was read. */
  const reading = new Map<string, boolean>()

  const work = <T>(task: Promise<T>): Promise<T | undefined> => {
    const caught = task.catch(() => undefined).finally(() => working.delete(caught))
    working.add(caught)
    return caught
  }

  const readOnce = async (uri: string): Promise<void> => {
    const [to, started] = [link, history.facts.length]
    const answer = await to?.ask('resources/read', { uri }).catch(() => undefined)
    // A connection that broke is no answer. The next one begins by reading.
    if (answer === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      return closed || link !== to ? undefined : readOnce(uri)
    }
    const { result, error } = answer
    // What cannot be answered just now, as where a root is gone, says nothing: it is asked again, as long as it takes.
    if (error !== undefined && error.data?.uri !== uri) {
      history.add({ kind: 'failed', client: number, uri, text: JSON.stringify(error).slice(0, 300) })
      await new Promise((resolve) => setTimeout(resolve, 100))
      return closed || link !== to ? undefined : readOnce(uri)
    }
    const [content] = (result?.contents ?? []) as readonly { readonly text?: string }[]
    const version = content === undefined ? 'absent' : options.versionOf(uri, content.text ?? '')
    history.add({ kind: 'read', client: number, uri, version, started })
  }
  const read = (uri: string): void => {
    if (reading.has(uri)) return void reading.set(uri, true)
    reading.set(uri, false)
    void work(readOnce(uri)).then(() => {
      const again = reading.get(uri)
      reading.delete(uri)
      if (again) read(uri)
    })
  }

  const end = (how: 'result' | 'cut' | 'client'): void => {
    if (stream !== undefined) history.add({ kind: 'end', stream, how })
    stream = undefined
    ready = false
    line = undefined
  }
  const acknowledge = (id: number, uris: readonly string[], list: boolean): void => {
    history.add({ kind: 'ack', stream: id, uris, list })
    options.acknowledged(uris)
    // Nobody knows what happened before.
    for (const uri of wishes.follows) if (uris.includes(uri)) read(uri)
  }
  const hear = (id: number, message: Message): void => {
    const uri = String(message.params?.uri)
    switch (message.method) {
      case 'notifications/subscriptions/acknowledged': {
        const honoured = message.params?.notifications as {
          resourceSubscriptions?: string[]
          resourcesListChanged?: true
        }
        ready = true
        acknowledge(id, honoured.resourceSubscriptions ?? [], honoured.resourcesListChanged === true)
        return
      }
      case 'notifications/resources/updated':
        history.add({ kind: 'updated', stream: id, uri })
        counts.set(uri, (counts.get(uri) ?? 0) + 1)
        if (wishes.follows.includes(uri)) read(uri)
        return
      case 'notifications/resources/list_changed':
        // A session is never told that it will be told: from the first time on, it must be.
        if (link?.modern === false && !listed) history.add({ kind: 'ack', stream: id, uris: [], list: true })
        listed = true
        history.add({ kind: 'listed', stream: id })
        return
      default:
        stray(message)
    }
  }
  const stray = (message: Message): void =>
    history.add({ kind: 'stray', client: number, text: JSON.stringify(message).slice(0, 300) })

  const listen = async (): Promise<void> => {
    const to = link
    if (to === undefined) return
    wishes = options.wish()
    counts = new Map()
    listed = false
    const id = history.newStream()
    stream = id
    history.add({ kind: 'open', stream: id, client: number, principal, modern: to.modern })
    const ended = (how: 'result' | 'cut'): void => {
      if (stream !== id) return
      end(how)
      if (!closed) void restart()
    }
    const ear = { hear: (message: Message) => void (stream === id && hear(id, message)), ended }
    if (to.modern) {
      const { uris, follows, list } = wishes
      history.add({ kind: 'ask', stream: id, uris, follows, list })
      doing = 'listens'
      line = to.listen({ resourceSubscriptions: wishes.uris, resourcesListChanged: wishes.list }, ear)
      return
    }
    // A session is told of the list without asking.
    history.add({ kind: 'ask', stream: id, uris: [], list: true, follows: wishes.follows })
    line = to.listen({}, ear)
    for (const uri of wishes.uris) {
      doing = `subscribes to ${uri}`
      history.add({ kind: 'ask', stream: id, uris: [uri], list: false, follows: [] })
      const answer = await to.ask('resources/subscribe', { uri }).catch(() => undefined)
      if (stream !== id) return
      // A kept connection may be closed just as a request goes out on it. A client begins anew then.
      if (answer === undefined) return void (closed || restart())
      if (answer.result !== undefined) acknowledge(id, [uri], false)
    }
    ready = stream === id
  }

  const start = async (): Promise<void> => {
    while (!closed) {
      doing = 'connects'
      const opened = await options.connect(stray).catch(() => undefined)
      // The service may be on its way back.
      if (opened === undefined) await new Promise((resolve) => setTimeout(resolve, 20))
      else if (closed) return opened.close()
      else {
        link = opened
        return listen().catch(() => {})
      }
    }
  }

  const restart = async (): Promise<void> => {
    end('client')
    link?.close()
    stalled = false
    await work(start())
  }

  const client: Client = {
    get link() {
      return link
    },
    get stream() {
      return ready ? stream : undefined
    },
    get stalled() {
      return stalled
    },
    get state() {
      const parts = [stalled && 'stalled', stream === undefined ? 'connecting' : ready ? 'told' : 'asking to be told']
      return [...parts.filter((part) => part !== false), `${working.size} tasks`, doing].join(', ')
    },
    get busy() {
      return working.size > 0
    },
    start: async () => void (await work(start())),
    restart: async () => {
      if (ready) await restart()
    },
    change: async () => {
      if (link === undefined || !ready) return
      if (!link.modern) return client.leave()
      line?.close()
      end('client')
      await work(listen())
    },
    leave: async () => {
      const [id, to] = [ready ? stream : undefined, link]
      const left = wishes.uris.filter((uri) => counts.has(uri) && !wishes.keeps.includes(uri))
      if (id === undefined || to === undefined || to.modern || left.length === 0) return
      const uri = random.pick(left)
      const others = (all: readonly string[]) => all.filter((one) => one !== uri)
      wishes = { ...wishes, uris: others(wishes.uris), follows: others(wishes.follows) }
      history.add({ kind: 'left', stream: id, uri })
      const answer = await work(to.ask('resources/unsubscribe', { uri }))
      if (answer !== undefined && to.ordered && stream === id) history.add({ kind: 'gone', stream: id, uri })
    },
    resume: async () => {
      // Once between two quiet moments: more often would blur what each notification is about.
      const last = history.facts.findLastIndex(({ kind }) => kind === 'quiet')
      if (link?.resumable !== true || stream === undefined || !ready || resumed > last) return
      resumed = history.facts.length
      history.add({ kind: 'resumed', stream })
      await work(link.resume())
    },
    stall: () => {
      stalled = true
      link?.stall()
    },
    flow: () => {
      stalled = false
      link?.flow()
    },
    list: async () => {
      const uris: string[] = []
      const all = async () => {
        let cursor: unknown
        do {
          const { result } = (await link?.ask('resources/list', cursor === undefined ? {} : { cursor })) ?? {}
          if (result === undefined) return
          uris.push(...(result.resources as { readonly uri: string }[]).map(({ uri }) => uri))
          cursor = result.nextCursor
        } while (cursor !== undefined)
        history.add({ kind: 'list', client: number, principal, uris })
      }
      await work(all())
    },
    heard: (uri) => counts.get(uri) ?? 0,
    idle: async () => {
      while (working.size > 0) await Promise.all(working)
    },
    retire: () => {
      closed = true
    },
    close: () => {
      closed = true
      end('client')
      link?.close()
    },
  }
  return client
}

/** Lets a client do one of the things that clients do. */
export function makeTrouble(client: Client, random: Random): void {
  const kind = random.below(12)
  if (kind < 3) void client.restart()
  else if (kind < 5) void client.change()
  else if (kind < 6) void client.leave()
  else if (kind < 8) void client.resume()
  else if (kind < 10) client.stall()
  else void client.list()
}
