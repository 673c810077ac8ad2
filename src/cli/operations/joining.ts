import type { Server, Socket } from 'node:net'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import { defaultConfig, stateFolder } from '../../config/state-folder.ts'
import { createEvent } from '../../core/kit/abort.ts'
import { makeFolder } from '../../core/kit/make-folder.ts'
import { createWriter, readLines, resumedMethod } from '../../server/stdio/lines.ts'
import type { Sharing } from '../terminal/io.ts'

const fs = process.getBuiltinModule('node:fs')

/** The options with which a server can be shared, and those of them that take a value. */
const options = new Set(['--stdio', '--strict', '--config', '--name', '--only', '--log-level', '--log-format'])
const valued = new Set(['--config', '--name', '--only', '--log-level', '--log-format'])
/** Maximum length of the path of a socket in bytes: that of macOS, which has the shortest. */
const maxPathBytes = 103
/** Maximum length of a message of the server and of the client, in bytes. That of the client is the limit of the server. */
const maxLineBytes = { server: 64 * 1024 * 1024, client: 4 * 1024 * 1024 }
/** How often, and after which pause in milliseconds, a place is tried that another process takes or leaves at this moment. */
const trial = { times: 40, pauseMs: 25 }
/** The largest configuration that is compared, in bytes. */
const maxConfigBytes = 1024 * 1024
/** How long a server may take to greet, at the start and while a client waits, and how often it is then asked, in milliseconds. */
const patience = { startMs: 2000, laterMs: 4000, everyMs: 2000 }
/** The number of servers that may end before a request gets an error: it may be what ends them. */
const maxServers = 2

/**
 * Joins the process that serves the same to another host, or lets others join this one (`serve --stdio`). Processes serve the same if
 * they have the same program, arguments and configuration, the same rights, and the same values of the variables that matter. It loads
 * next to nothing, because a process that joins only passes on messages.
 *
 * Resolves to `served` when another process has served the client to its end, and to `undefined` if this one serves alone.
 *
 * @param words The command line: `serve` and its arguments.
 */
export async function joinServer(words: readonly string[]): Promise<Sharing | 'served' | undefined> {
  const path = socketOf(words)
  if (path === undefined || !isPrivate(dirname(path))) return undefined
  let session: ReturnType<typeof createSession> | undefined
  const alone = () =>
    session && { cursorSecret: session.cursorSecret(), onClient: () => {}, leave: () => {}, own: session.takeOver() }
  for (let left = trial.times; left > 0; left--) {
    const place = await listen(path, session?.cursorSecret())
    if (place === undefined) return alone()
    if (place !== 'taken') return { ...place, ...(session && { own: session.takeOver() }) }
    const server = await connect(path, patience.startMs)
    if (server === 'unusable') return alone()
    if (server === 'gone') {
      removeStale(path)
      await new Promise((done) => setTimeout(done, trial.pauseMs))
      continue
    }
    session ??= createSession()
    tellJoined(words, server.pid)
    const outcome = await session.relay(server, path)
    if (outcome === 'served') return 'served'
    if (outcome === 'stuck') return alone()
    left = trial.times
  }
  return alone()
}

/** Writes to the log of a joined process where the events of its client are. */
function tellJoined(words: readonly string[], pid: number): void {
  const given = (name: string) =>
    words
      .flatMap((word, at) =>
        word === name ? [words[at + 1]] : word.startsWith(`${name}=`) ? [word.slice(name.length + 1)] : [],
      )
      .at(-1)
  if (['warn', 'error', 'silent'].includes(given('--log-level') ?? '')) return
  const time = new Date().toISOString()
  const message = 'another hikidashi process on this machine serves this client'
  const line =
    given('--log-format') === 'json'
      ? JSON.stringify({ time, level: 'info', message, pid })
      : `${time} info  ${message} pid=${pid}`
  process.stderr.on('error', () => {}).write(`${line}\n`)
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

/** A connection to a server that has greeted. */
interface Greeted {
  readonly socket: Socket
  /** The secret with which its lists seal their cursors. */
  readonly cursorSecret: string
  readonly pid: number
}

/** Nobody listens at a socket any more, or the process that listens does not answer, or may not be asked. */
type Unreached = 'gone' | 'unusable'

/** Connects to a socket, and waits for the greeting: a stopped process accepts connections, too. */
export function connect(path: string, timeoutMs: number): Promise<Greeted | Unreached> {
  const { createConnection } = process.getBuiltinModule('node:net')
  return new Promise((done) => {
    const socket = createConnection({ path })
    let read = Buffer.alloc(0)
    const end = (result: Greeted | Unreached) => {
      clearTimeout(timer)
      socket.off('error', onError).off('close', onClose).off('data', onData)
      socket.on('error', () => {})
      if (typeof result === 'string') socket.destroy()
      done(result)
    }
    const onError = ({ code = '' }: NodeJS.ErrnoException) =>
      end(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes(code) ? 'gone' : 'unusable')
    const onClose = () => end('gone')
    const onData = (chunk: Buffer) => {
      read = Buffer.concat([read, chunk])
      const at = read.indexOf(0x0a)
      if (at === -1) return
      socket.pause()
      if (at + 1 < read.length) socket.unshift(read.subarray(at + 1))
      const [{ cursorSecret, pid } = {}] = parsed(read.toString('utf8', 0, at)) as Partial<Omit<Greeted, 'socket'>>[]
      end(cursorSecret === undefined || pid === undefined ? 'unusable' : { socket, cursorSecret, pid })
    }
    const timer = setTimeout(() => end('unusable'), timeoutMs)
    socket.on('error', onError).on('close', onClose).on('data', onData)
  })
}

/** The socket of a command line; `undefined` if it cannot be shared. Its name begins with the digest of its configuration or folder. */
function socketOf(words: readonly string[]): string | undefined {
  const folders: string[] = []
  const rest: string[] = []
  let config: string | undefined
  for (let at = 1; at < words.length; at++) {
    const word = words[at] ?? ''
    const [, name = '', given] = /^(--[^=]+)(?:=(.*))?$/s.exec(word) ?? []
    if (name === '' && !word.startsWith('-')) folders.push(resolve(word))
    else if (!options.has(name)) return undefined
    else if (name === '--config') config = resolve(given ?? words[++at] ?? '')
    else rest.push(name, valued.has(name) ? (given ?? words[++at] ?? '') : '')
  }
  // A named pipe of Windows cannot be limited to its user with Node.
  if (!rest.includes('--stdio') || process.platform === 'win32') return undefined
  const found = folders.length === 0 && fs.existsSync(defaultConfig) ? resolve(defaultConfig) : undefined
  const file = config ?? found
  const first = folders[0] ?? (file === undefined ? resolve('.') : dirname(file))
  try {
    // A person at a terminal wants to see this server.
    if (fs.fstatSync(0).isCharacterDevice()) return undefined
    const settings = file === undefined ? [] : settingsOf(file)
    if (settings === undefined) return undefined
    const served = file === undefined && folders.length === 0 ? [first] : folders
    // A folder can be spelled in several ways, and its address is the one that was given.
    const seen = [served.map((folder) => [folder, realPath(folder)]), spelledFolder()]
    const facts = [
      programFacts(),
      rest,
      config === undefined,
      settings,
      seen,
      variablesOf(common),
      programsHere(),
      rights(),
    ]
    const path = join(stateFolder(), 'run', `${digest(realPath(file ?? first))}-${digest(JSON.stringify(facts))}`)
    return Buffer.byteLength(path) <= maxPathBytes ? path : undefined
  } catch {
    // The server itself reports what is missing.
    return undefined
  }
}

/** The program and the Node that runs it. An installation of another version is another file. */
function programFacts(): readonly unknown[] {
  const main = fs.realpathSync(process.argv[1] ?? '')
  const { ino, mtimeMs, size } = fs.statSync(main)
  return [main, ino, mtimeMs, size, process.version, process.execPath, process.execArgv]
}

/** The current folder as the shell spells it, if that differs: URIs may be spelled so. */
function spelledFolder(): readonly string[] {
  const { PWD: shown } = process.env
  const cwd = process.cwd()
  return shown === undefined || shown === cwd ? [] : [shown, cwd]
}

/** The variables that change what a server does. */
const common =
  /^(?:HOME|TZ|TESSDATA_PREFIX|UV_\w+|XDG_\w+_HOME|GIT_CONFIG\w*|HIKIDASHI_\w+|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|TLS_\w+|USE_\w+))$/
/** The variables that sources of a configuration use, too. */
const configured =
  /^(?:AWS|AZURE|GOOGLE|GCLOUD|CLOUDSDK|METADATA|PG|MYSQL|SSL|DISPLAY|WAYLAND|XDG|XAUTHORITY)|^(?:LOGNAME|PATH|SHELL|TERM|USER)$|_PROXY$/i

function variablesOf(used: RegExp): readonly unknown[] {
  return Object.entries(process.env)
    .filter(([name]) => used.test(name))
    .map(([name, value = '']) => [name, name === 'PATH' ? foreignFolders(value) : value])
    .sort()
}

/** The folders of the PATH in which the programs are that a folder needs. Hosts put folders of their own into the PATH. */
function programsHere(): readonly unknown[] {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(isAbsolute)
  return ['git', 'tesseract'].map((name) => folders.find((folder) => fs.existsSync(join(folder, name))))
}

/** The folders of a PATH, without those that npm puts before it, which differ with the current folder. */
function foreignFolders(path: string): readonly string[] {
  return path.split(delimiter).filter((folder) => !/[\\/]node_modules[\\/]\.bin$|[\\/]node-gyp-bin$/.test(folder))
}

/** Facts that differ for a process in a container or a sandbox, or with other rights: it sees other files. */
function rights(): readonly unknown[] {
  const { dev, ino } = fs.statSync('/')
  const place = [process.getBuiltinModule('node:os').hostname(), dev, ino, process.getgroups?.()]
  if (process.platform !== 'linux') return place
  const spaces = ['mnt', 'net', 'pid', 'user'].map((name) => fs.readlinkSync(`/proc/self/ns/${name}`))
  const status = fs.readFileSync('/proc/self/status', 'utf8')
  return [...place, ...spaces, status.match(/^(?:Uid|Gid|CapEff|NoNewPrivs|Seccomp):.*$/gm)]
}

/** All that a configuration depends on; `undefined` for one that names the environment, which differs between hosts. */
function settingsOf(file: string): readonly unknown[] | undefined {
  if (fs.statSync(file).size > maxConfigBytes) return undefined
  const text = fs.readFileSync(file, 'utf8')
  // An escape could hide a name.
  return /"env"|"audit"|\\u/.test(text) ? undefined : [realPath(file), text, variablesOf(configured)]
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

/** Listens at a path, and greets each client. Resolves to `taken` if there is a socket, and to `undefined` where none can be. */
async function listen(
  path: string,
  cursorSecret = process.getBuiltinModule('node:crypto').randomBytes(32).toString('base64'),
): Promise<Sharing | 'taken' | undefined> {
  const { createServer } = process.getBuiltinModule('node:net')
  const greeting = `${JSON.stringify({ cursorSecret, pid: process.pid })}\n`
  const waiting: Socket[] = []
  let serve = (socket: Socket): void => void waiting.push(socket)
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    socket.write(greeting)
    serve(socket)
  })
  const failure = await new Promise<string | undefined>((done) => {
    server.once('error', ({ code }: NodeJS.ErrnoException) => done(code ?? 'unknown'))
    server.listen({ path }, () => done(undefined))
  })
  if (failure !== undefined) return failure === 'EADDRINUSE' ? 'taken' : undefined
  fs.chmodSync(path, 0o600)
  server.on('error', () => {})
  // Only the own client keeps the process alive.
  server.unref()
  const own = identityOf(path)
  const remove = () => {
    if (identityOf(path) === own) fs.rmSync(path, { force: true })
  }
  process.once('exit', remove)
  return {
    cursorSecret,
    onClient: (next) => {
      serve = next
      for (const socket of waiting.splice(0)) serve(socket)
    },
    leave: () => {
      process.off('exit', remove)
      serve = (socket) => socket.destroy()
      // This removes the socket, too, if it is still this one.
      if (identityOf(path) === own) server.close()
    },
  }
}

/** Tells a socket from another one at the same path. The number of a file alone is soon given again. */
function identityOf(path: string): string | undefined {
  const stats = fs.statSync(path, { throwIfNoEntry: false })
  return stats && `${stats.ino} ${stats.mtimeMs}`
}

/** Removes a socket at which nobody listens. */
function removeStale(path: string): void {
  const stale = identityOf(path)
  if (stale === undefined) return
  const aside = `${path}.${process.pid}`
  try {
    fs.renameSync(path, aside)
    // Another process may have begun to listen meanwhile: it gets its place back.
    if (identityOf(aside) === stale) fs.rmSync(aside)
    else fs.renameSync(aside, path)
  } catch {
    // Another process was faster.
  }
}

/** The requests of a client that have no answer yet, by the JSON of their ids. */
function createRequests() {
  const pending = new Map<string, string>()
  /** How many servers have got each. */
  const sent = new Map<string, number>()
  /** The ids of streams of 2026-07-28 that a server has confirmed. */
  const confirmed = new Set<string>()
  const send = (id: string): void => void sent.set(id, (sent.get(id) ?? 0) + 1)
  const forget = (id: string): void => {
    pending.delete(id)
    sent.delete(id)
    confirmed.delete(id)
  }
  /** The answer to a request of a server that has ended, if the request is not repeated. */
  const lastAnswer = (key: string): object | undefined => {
    const servers = sent.get(key) ?? 0
    // Changes may have been missed: the client listens anew, and reads again what it follows.
    if (confirmed.has(key)) return { result: { resultType: 'complete', _meta: { [streamKey]: JSON.parse(key) } } }
    if (servers > 0 && callsOtherTool(pending.get(key) ?? '')) return { error: unknownEffect }
    return servers >= maxServers ? { error: repeatedEnd } : undefined
  }
  return { pending, confirmed, send, forget, lastAnswer }
}

/** The messages that opened a session, by a name for each: a subscription that has ended is not made again. */
function createOpening() {
  const lines = new Map<string, string>()
  /** The ids of requests that are sent again only for the state of the server: nobody waits for their answers. */
  const repeated = new Set<string>()
  return {
    take: ({ method = '', params }: PassedMessage, line: string): void => {
      const subscribed = `subscribed ${String(params?.uri)}`
      if (method === 'initialize' || method === 'notifications/initialized' || method === 'logging/setLevel')
        lines.set(method, line)
      else if (method === 'resources/subscribe') lines.set(subscribed, line)
      else if (method === 'resources/unsubscribe') lines.delete(subscribed)
    },
    hasSubscriptions: () => [...lines.keys()].some((name) => name.startsWith('subscribed ')),
    /** The messages but those that have no answer yet, and so are sent again anyway. */
    linesBut: (pending: readonly string[]): readonly string[] => {
      const again = [...lines.values()].filter((line) => !pending.includes(line))
      for (const { id } of again.flatMap(parsed)) if (id !== undefined) repeated.add(JSON.stringify(id))
      return again
    },
    /** Whether nobody waits for the answer to a request. */
    takesAnswer: (id: string): boolean => repeated.delete(id),
  }
}

/** Closes the socket of a server that does not greet any more while its client waits. `end` returns whether that has happened. */
function watchServer(socket: Socket, path: string, isWaiting: () => boolean) {
  let isStuck = false
  const timer = setInterval(async () => {
    if (!isWaiting()) return
    const probe = await connect(path, patience.laterMs)
    if (typeof probe !== 'string') probe.socket.destroy()
    else if (probe === 'unusable') {
      isStuck = true
      socket.destroy()
    }
  }, patience.everyMs)
  return {
    end: () => {
      clearInterval(timer)
      return isStuck
    },
  }
}

/** The messages of the client that a server must have seen, so that it can go on where another one has stopped. */
function createSession() {
  const writer = createWriter(process.stdout)
  const stop = new AbortController()
  const end = () => stop.abort()
  process.once('SIGTERM', end).once('SIGINT', end)
  const opening = createOpening()
  const requests = createRequests()
  const { pending, confirmed, forget } = requests
  let ended = false
  /** The server that the messages go to. */
  let server: Writable | undefined
  let cursorSecret = ''
  const flow = createEvent()
  let tell = () => {}

  const take = (line: string): void => {
    const messages = parsed(line)
    for (const message of messages) {
      const { id, method = '', params } = message
      opening.take(message, line)
      if (method === 'notifications/cancelled') forget(JSON.stringify(params?.requestId))
      if (id === undefined || method === '') continue
      pending.set(JSON.stringify(id), line)
      if (server !== undefined) requests.send(JSON.stringify(id))
    }
    server?.write(`${line}\n`)
  }
  /** Waits for a server that takes messages more slowly than the client sends them. */
  const drained = async () => {
    while (server?.writableNeedDrain === true && !server.destroyed) await flow.wait()
  }
  const write = (message: object) =>
    writer.write(() => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).catch(end)
  const pump = async () => {
    for await (const lines of readLines(process.stdin, maxLineBytes.client, stop.signal))
      for (const line of lines) {
        if (line === 'too-long') await write({ id: null, error: tooLong })
        else take(textOf(line))
        await drained()
      }
    ended = true
    tell()
  }
  void pump()

  /** Sends to a new server what it must know, and then the requests without an answer. */
  const resume = (to: Writable) => {
    to.on('drain', flow.set).on('close', flow.set)
    const again = opening.linesBut([...pending.values()])
    for (const line of again) to.write(`${line}\n`)
    if (again.length > 0) to.write(`${JSON.stringify({ jsonrpc: '2.0', method: resumedMethod })}\n`)
    for (const key of pending.keys()) {
      const answer = requests.lastAnswer(key)
      if (answer === undefined) continue
      void write({ id: JSON.parse(key), ...answer })
      forget(key)
    }
    for (const line of new Set(pending.values())) to.write(`${line}\n`)
    for (const id of pending.keys()) requests.send(id)
    server = to
    if (ended) tell()
  }
  /** Passes an answer on, unless nobody waits for it. */
  const give = async (line: Uint8Array): Promise<void> => {
    // The text of a large answer would take memory that stays.
    const head = textOf(line.subarray(0, maxHeadBytes))
    const [, id = '', of] = /^\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?[\d.eE+-]+),"(\w+)"/.exec(head) ?? []
    const isAnswer = of === 'result' || of === 'error'
    if (isAnswer && opening.takesAnswer(id)) return
    await writer.write(() => Buffer.concat([line, newline])).catch(end)
    if (isAnswer) forget(id)
    else if (/^\{"jsonrpc":"2\.0","method":"notifications\/(?:subscriptions\/acknowledged|events\/active)"/.test(head))
      for (const { params } of parsed(textOf(line))) confirmed.add(JSON.stringify(memberOf(params?._meta, streamKey)))
    // A batch, and an answer in another form.
    else if (!head.startsWith('{"jsonrpc":"2.0","method"'))
      for (const { id } of parsed(textOf(line))) forget(JSON.stringify(id))
  }
  const giveAll = async (from: Readable) => {
    for await (const lines of readLines(from, maxLineBytes.server, new AbortController().signal))
      for (const line of lines) if (line !== 'too-long') await give(line)
  }

  return {
    /** The secret of the last server, with which a new one opens the cursors that the client has. */
    cursorSecret: () => cursorSecret,
    /**
     * Passes messages between the client and a server. Resolves to `lost` if the server ends before the client, and to `stuck` if it does
     * not answer, while the client waits, that it is alive.
     */
    relay: async (greeted: Greeted, path: string): Promise<'served' | 'lost' | 'stuck'> => {
      const { socket } = greeted
      cursorSecret = greeted.cursorSecret
      tell = () => socket.end()
      socket.write(`${JSON.stringify({ hikidashi: 'join', env: process.env })}\n`)
      resume(socket)
      const isWaiting = () => pending.size > 0 || ended || opening.hasSubscriptions()
      const watch = watchServer(socket, path, isWaiting)
      await giveAll(socket)
      server = undefined
      flow.set()
      socket.destroy()
      const isStuck = watch.end()
      if (ended && (pending.size === 0 || stop.signal.aborted)) return 'served'
      return isStuck ? 'stuck' : 'lost'
    },
    /** Streams with which this process itself serves the client from now on. */
    takeOver: () => {
      const input = new PassThrough()
      const output = new PassThrough()
      tell = () => input.end()
      resume(input)
      void giveAll(output)
      return { input, output }
    },
  }
}

/** The beginning of a message, which tells what it is. */
const maxHeadBytes = 1024
const newline = Buffer.from('\n')

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

/** The member of `_meta` with the id of a stream (2026-07-28). */
const streamKey = 'io.modelcontextprotocol/subscriptionId'
const tooLong = { code: -32700, message: 'The message is longer than the limit.' }
const repeatedEnd = {
  code: -32603,
  message: 'Several servers have ended during this request, so it is not repeated. Send it again.',
}
const unknownEffect = {
  code: -32603,
  message: 'The server ended while the tool ran. Check the effects of the tool before you call it again.',
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
