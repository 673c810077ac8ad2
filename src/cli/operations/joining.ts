import type { Server, Socket } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { PassThrough, type Readable } from 'node:stream'
import { defaultConfig, stateFolder } from '../../config/state-folder.ts'
import { makeFolder } from '../../core/kit/make-folder.ts'
import { createWriter, readLines } from '../../server/stdio/lines.ts'
import type { Sharing } from '../terminal/io.ts'

const fs = process.getBuiltinModule('node:fs')

/** The options with which a server can be shared, and those of them that take a value. */
const options = new Set([
  '--stdio',
  '--share',
  '--strict',
  '--config',
  '--name',
  '--only',
  '--log-level',
  '--log-format',
])
const valued = new Set(['--config', '--name', '--only', '--log-level', '--log-format'])
/** Maximum length of the path of a socket in bytes: that of macOS, which has the shortest. */
const maxPathBytes = 103
/** Maximum length of a message in bytes. */
const maxLineBytes = 64 * 1024 * 1024
/** How often, and after which pause in milliseconds, a place is tried that another process takes or leaves at this moment. */
const trial = { times: 40, pauseMs: 25 }
/** The largest configuration that is compared, in bytes. */
const maxConfigBytes = 1024 * 1024

/**
 * Joins the process that serves the same to another host, or lets others join this one (`serve --stdio --share`). Processes serve the
 * same if they have the same program, the same arguments, the same configuration with the same environment, and if they see the same
 * names in the folders. It loads next to nothing, because a process that joins only passes on messages.
 *
 * Resolves to `served` when another process has served the client to its end, and to `undefined` if this one serves alone.
 *
 * @param words The command line: `serve` and its arguments.
 */
export async function joinServer(words: readonly string[]): Promise<Sharing | 'served' | undefined> {
  const path = placeOf(words)
  if (path === undefined) return undefined
  let session: ReturnType<typeof createSession> | undefined
  for (let left = trial.times; left > 0; left--) {
    const onClient = await listen(path)
    if (onClient !== undefined) return { onClient, ...(session && { own: session.takeOver() }) }
    const socket = await connect(path)
    if (socket === undefined) {
      removeStale(path)
      await new Promise((done) => setTimeout(done, trial.pauseMs))
      continue
    }
    session ??= createSession()
    if ((await session.relay(socket)) === 'served') return 'served'
    left = trial.times
  }
  return session && { onClient: () => {}, own: session.takeOver() }
}

/** Listens for hooks, which ask the server of their folder. `undefined`: another process does, or there is no place for a socket. */
export async function listenForHooks(words: readonly string[]): Promise<Sharing['onClient'] | undefined> {
  const path = placeOf(words)
  if (path === undefined) return undefined
  const onClient = await listen(path)
  if (onClient !== undefined) return onClient
  const socket = await connect(path)
  if (socket !== undefined) return void socket.destroy()
  removeStale(path)
  return listen(path)
}

/** The socket of a command line, if its folder is private. */
function placeOf(words: readonly string[]): string | undefined {
  const path = socketOf(words)
  return path !== undefined && isPrivate(dirname(path)) ? path : undefined
}

/** The sockets of running servers of a configuration, or of a folder without one, the newest first. */
export function socketsOf(path: string): readonly string[] {
  const run = join(stateFolder(), 'run')
  try {
    const mine = fs.readdirSync(run).filter((name) => name.startsWith(`${digest(realPath(path))}-`))
    const paths = mine.map((name) => join(run, name))
    return isPrivate(run) ? paths.sort((a, b) => fs.statSync(b).mtimeMs - fs.statSync(a).mtimeMs) : []
  } catch {
    return []
  }
}

/** Connects to a socket. Resolves to `undefined` if nobody listens there. */
export function connect(path: string): Promise<Socket | undefined> {
  const { createConnection } = process.getBuiltinModule('node:net')
  return new Promise((done) => {
    const socket = createConnection({ path })
    socket.once('connect', () => done(socket.removeAllListeners('error').on('error', () => {})))
    socket.once('error', () => done(undefined))
  })
}

/** The socket of a command line; `undefined` if it cannot be shared. Its name begins with the digest of its configuration or folder. */
function socketOf(words: readonly string[]): string | undefined {
  const folders: string[] = []
  const rest: string[] = []
  let config: string | undefined
  for (let at = 1; at < words.length; at++) {
    const [, name = '', given] = /^(--[^=]+)(?:=(.*))?$/s.exec(words[at] ?? '') ?? []
    if (name === '') folders.push(resolve(words[at] ?? ''))
    else if (!options.has(name)) return undefined
    else if (name === '--config') config = resolve(given ?? words[++at] ?? '')
    else rest.push(name, valued.has(name) ? (given ?? words[++at] ?? '') : '')
  }
  // A named pipe of Windows cannot be limited to its user with Node.
  if (!rest.includes('--stdio') || process.platform === 'win32') return undefined
  const found = folders.length === 0 && fs.existsSync(defaultConfig) ? resolve(defaultConfig) : undefined
  const file = config ?? found
  const first = folders[0] ?? (file === undefined ? resolve('.') : dirname(file))
  const main = fs.realpathSync(process.argv[1] ?? '')
  try {
    const settings = file === undefined ? [] : settingsOf(file)
    if (settings === undefined) return undefined
    const seen = (file === undefined && folders.length === 0 ? [first] : folders).map((folder) => [
      realPath(folder),
      fs.readdirSync(folder).sort(),
    ])
    const facts = [main, fs.statSync(main).mtimeMs, process.version, rest, config === undefined, settings, seen]
    const path = join(stateFolder(), 'run', `${digest(realPath(file ?? first))}-${digest(JSON.stringify(facts))}`)
    return Buffer.byteLength(path) <= maxPathBytes ? path : undefined
  } catch {
    // The server itself reports what is missing.
    return undefined
  }
}

/** All that a configuration depends on; `undefined` for one that names the environment, which differs between hosts. */
function settingsOf(file: string): readonly unknown[] | undefined {
  if (fs.statSync(file).size > maxConfigBytes) return undefined
  const text = fs.readFileSync(file, 'utf8')
  // An escape could hide a name.
  if (/"env"|"listen"|"audit"|\\u/.test(text)) return undefined
  const used = /^(?:AWS|GOOGLE|GCLOUD|CLOUDSDK|HIKIDASHI|PG|MYSQL|SSL|NODE)_?|_PROXY$/i
  const variables = Object.entries(process.env).filter(([name]) => used.test(name))
  const trust = join(stateFolder(), 'trust')
  return [realPath(file), text, variables.sort(), fs.existsSync(trust) ? fs.readdirSync(trust).sort() : []]
}

function realPath(path: string): string {
  return fs.realpathSync(path)
}

function digest(text: string): string {
  return process.getBuiltinModule('node:crypto').createHash('sha256').update(text).digest('hex').slice(0, 12)
}

/** Makes the folder of the sockets, which only this user may enter. Returns whether it is so. */
function isPrivate(folder: string): boolean {
  try {
    makeFolder(folder, 0o700)
    const { uid, mode } = fs.lstatSync(folder)
    return uid === process.getuid?.() && (mode & 0o077) === 0
  } catch {
    return false
  }
}

/** Listens at a path. Resolves to `undefined` if another process does, or did. */
async function listen(path: string): Promise<Sharing['onClient'] | undefined> {
  const { createServer } = process.getBuiltinModule('node:net')
  const waiting: Socket[] = []
  let serve = (socket: Socket): void => void waiting.push(socket)
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    serve(socket)
  })
  const isOurs = await new Promise<boolean>((done) => {
    server.once('error', () => done(false))
    server.listen({ path }, () => done(true))
  })
  if (!isOurs) return undefined
  fs.chmodSync(path, 0o600)
  server.on('error', () => {})
  // Only the own client keeps the process alive.
  server.unref()
  process.once('exit', () => fs.rmSync(path, { force: true }))
  return (next) => {
    serve = next
    for (const socket of waiting.splice(0)) serve(socket)
  }
}

/** Removes a socket at which nobody listens. */
function removeStale(path: string): void {
  const { ino } = fs.statSync(path, { throwIfNoEntry: false }) ?? {}
  if (ino === undefined) return
  const aside = `${path}.${process.pid}`
  try {
    fs.renameSync(path, aside)
    // Another process may have begun to listen meanwhile: it gets its place back.
    if (fs.statSync(aside).ino === ino) fs.rmSync(aside)
    else fs.renameSync(aside, path)
  } catch {
    // Another process was faster.
  }
}

/** The requests of a client that have no answer yet, by the JSON of their ids. */
function createRequests() {
  const pending = new Map<string, string>()
  /** The ids of those that a server has got. */
  const sent = new Set<string>()
  /** The ids of streams of 2026-07-28 that a server has confirmed. */
  const confirmed = new Set<string>()
  const forget = (id: string): void => {
    pending.delete(id)
    sent.delete(id)
    confirmed.delete(id)
  }
  return { pending, sent, confirmed, forget }
}

/** The messages of the client that a server must have seen, so that it can go on where another one has stopped. */
function createSession() {
  const writer = createWriter(process.stdout)
  const stop = new AbortController()
  const end = () => stop.abort()
  process.once('SIGTERM', end).once('SIGINT', end)
  /** The messages that opened the session, by a name for each: a subscription that has ended is not made again. */
  const opening = new Map<string, string>()
  const { pending, sent, confirmed, forget } = createRequests()
  /**
   * Requests that are sent again only for the state of the server: nobody waits for their answers. With the URI of a subscription, whose
   * changes may have been missed.
   */
  const repeated = new Map<string, string | undefined>()
  let ended = false
  let send: ((line: string) => void) | undefined
  let tell = () => {}

  const take = (line: string): void => {
    const messages = parsed(line)
    for (const { id, method = '', params } of messages) {
      const uri = typeof params?.uri === 'string' ? params.uri : ''
      if (method === 'initialize' || method === 'notifications/initialized' || method === 'logging/setLevel')
        opening.set(method, line)
      else if (method === 'resources/subscribe') opening.set(`subscribed ${uri}`, line)
      else if (method === 'resources/unsubscribe') opening.delete(`subscribed ${uri}`)
      else if (method === 'notifications/cancelled') forget(JSON.stringify(params?.requestId))
      if (id === undefined || method === '') continue
      pending.set(JSON.stringify(id), line)
      if (send !== undefined) sent.add(JSON.stringify(id))
    }
    send?.(line)
  }
  const write = (message: object) =>
    writer.write(() => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).catch(end)
  const pump = async () => {
    for await (const lines of readLines(process.stdin, maxLineBytes, stop.signal))
      for (const line of lines)
        if (line === 'too-long') await write({ id: null, error: tooLong })
        else take(Buffer.from(line).toString('utf8'))
    ended = true
    tell()
  }
  void pump()

  /** Sends again what a new server must know, and then the requests without an answer. */
  const resume = (to: (line: string) => void) => {
    for (const line of opening.values()) {
      if (isIn(pending, line)) continue
      for (const { id, method, params } of parsed(line))
        if (id !== undefined)
          repeated.set(JSON.stringify(id), method === 'resources/subscribe' ? String(params?.uri) : undefined)
      to(line)
    }
    for (const [key, line] of pending) {
      const id: unknown = JSON.parse(key)
      // Changes may have been missed: the client listens anew, and reads again what it follows.
      if (confirmed.has(key)) void write({ id, result: { resultType: 'complete', _meta: { [streamKey]: id } } })
      else if (sent.has(key) && callsOtherTool(line)) void write({ id, error: unknownEffect })
      else continue
      forget(key)
    }
    for (const line of new Set(pending.values())) to(line)
    for (const id of pending.keys()) sent.add(id)
    send = to
  }
  /** Tells a client of an earlier revision that something may have changed while nobody watched. */
  const tellMissed = async (uri: string | undefined): Promise<void> => {
    if (uri !== undefined) await write({ method: 'notifications/resources/updated', params: { uri } })
    await write({ method: 'notifications/resources/list_changed' })
  }
  /** Passes an answer on, unless nobody waits for it. */
  const give = async (line: string): Promise<void> => {
    const [, id = '', of] = /^\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?[\d.eE+-]+),"(\w+)"/.exec(line) ?? []
    const isAnswer = of === 'result' || of === 'error'
    if (isAnswer && repeated.has(id)) {
      const uri = repeated.get(id)
      repeated.delete(id)
      return tellMissed(uri)
    }
    await writer.write(() => `${line}\n`).catch(end)
    if (isAnswer) forget(id)
    else if (/^\{"jsonrpc":"2\.0","method":"notifications\/(?:subscriptions\/acknowledged|events\/active)"/.test(line))
      for (const { params } of parsed(line)) confirmed.add(JSON.stringify(memberOf(params?._meta, streamKey)))
    // A batch, and an answer in another form.
    else if (!line.startsWith('{"jsonrpc":"2.0","method"'))
      for (const { id } of parsed(line)) forget(JSON.stringify(id))
  }
  const giveAll = async (from: Readable) => {
    for await (const lines of readLines(from, maxLineBytes, new AbortController().signal))
      for (const line of lines) if (line !== 'too-long') await give(Buffer.from(line).toString('utf8'))
  }

  return {
    /** Passes messages between the client and a server. Resolves to `lost` if the server ends before the client. */
    relay: async (socket: Socket): Promise<'served' | 'lost'> => {
      tell = () => socket.end()
      resume((line) => void socket.write(`${line}\n`))
      if (ended) tell()
      await giveAll(socket)
      send = undefined
      socket.destroy()
      return ended && (pending.size === 0 || stop.signal.aborted) ? 'served' : 'lost'
    },
    /** Streams with which this process itself serves the client from now on. */
    takeOver: () => {
      const input = new PassThrough()
      const output = new PassThrough()
      tell = () => input.end()
      resume((line) => void input.write(`${line}\n`))
      if (ended) tell()
      void giveAll(output)
      return { input, output }
    },
  }
}

/** The member of `_meta` with the id of a stream (2026-07-28). */
const streamKey = 'io.modelcontextprotocol/subscriptionId'
const tooLong = { code: -32700, message: 'The message is longer than the limit.' }
const unknownEffect = {
  code: -32603,
  message: 'The server ended while the tool ran. Look at its effects before you call it again.',
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined
}

/** The tools of hikidashi that only read. */
const readingTools = new Set([
  ...['list_resources', 'browse_directory', 'read_resource', 'search_in_resource', 'search_resources'],
  ...['browse', 'assemble_context', 'what_changed', 'search', 'fetch'],
])

/** Whether a message calls a tool that may change something, such as one of a mounted server. */
function callsOtherTool(line: string): boolean {
  return parsed(line).some(({ method, params }) => method === 'tools/call' && !readingTools.has(String(params?.name)))
}

function isIn(lines: ReadonlyMap<string, string>, line: string): boolean {
  return [...lines.values()].includes(line)
}

interface PassedMessage {
  readonly id?: string | number | null
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
}

/** The messages of a line; none for a text that is not JSON. */
function parsed(line: string): readonly PassedMessage[] {
  try {
    const value: unknown = JSON.parse(line)
    return (Array.isArray(value) ? value : [value]).filter(
      (one) => typeof one === 'object' && one !== null,
    ) as PassedMessage[]
  } catch {
    return []
  }
}
