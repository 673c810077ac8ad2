import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { meta } from '../attack/harness/wire.ts'
import { type Running, start } from './cli.ts'
import { runHere } from './cli-here.ts'

/** The built command line, which serves two folders over HTTP to callers with a token. */
export interface Authorized {
  readonly home: string
  /** The URL of the MCP endpoint. */
  readonly url: string
  readonly running: Running
  /** Its output on stderr. */
  readonly log: () => string
  /** Runs `hikidashi token …` for its token file, and returns the output. */
  token(...words: readonly string[]): Promise<string>
  stop(): Promise<void>
}

/** A file for everybody, and one for the role `analyst` only, whose tokens need the scope `db:read`. */
export const openUri = 'docs://open/hello.txt'
export const closedUri = 'docs://closed/figures.txt'

/** Starts it with `http.auth`, HTTP limits and other settings. Its resource is the URL where it listens. */
export async function serveAuthorized(
  auth: Readonly<Record<string, unknown>>,
  mounts: Readonly<Record<string, unknown>> = {},
  { limits = {}, ...rest }: Readonly<Record<string, unknown>> = {},
): Promise<Authorized> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-authorized-')))
  for (const [folder, file, text] of [
    ['open', 'hello.txt', 'hello\n'],
    ['closed', 'figures.txt', '42\n'],
  ] as const) {
    await mkdir(join(home, folder))
    await writeFile(join(home, folder, file), text)
  }
  const config = {
    mounts: {
      'docs://open': { provider: 'files', root: 'open' },
      'docs://closed': { provider: 'files', root: 'closed', access: ['analyst'], scopes: ['db:read'] },
      ...mounts,
    },
    http: { listen: '127.0.0.1:0', auth, limits },
    ...rest,
  }
  await writeFile(join(home, 'hikidashi.json'), JSON.stringify(config))
  let log = ''
  const running = start(['serve', '--config', 'hikidashi.json', '--log-level', 'debug'], {
    cwd: home,
    env: { AS_SECRET: 'the-secret-of-the-program' },
  })
  running.child.stderr.on('data', (text: string) => {
    log += text
  })
  const [, url = ''] = await running.says(/at (http:\S+)\n[\s\S]*Ctrl-C stops it/)
  return {
    home,
    url,
    running,
    log: () => log,
    token: async (...words) => {
      const { code, out, err } = await runHere(['token', ...words], { cwd: home })
      if (code !== 0) throw new Error(err)
      return out.trim()
    },
    stop: async () => {
      running.child.kill('SIGTERM')
      const timer = setTimeout(() => running.child.kill('SIGKILL'), 15_000)
      await running.ended
      clearTimeout(timer)
      rmSync(home, { recursive: true, force: true })
    },
  }
}

export interface Asked {
  readonly status: number
  readonly challenge: string | null
  readonly headers: Headers
  readonly text: string
  readonly json: () => {
    readonly result?: Readonly<Record<string, unknown>>
    readonly error?: { readonly code: number; readonly message: string }
  }
}

/** Returns the headers of a request of 2026-07-28 with a token. */
export function headersFor(method: string, params: Readonly<Record<string, unknown>>, token: string | undefined) {
  return {
    'content-type': 'application/json',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(typeof params.uri === 'string' ? { 'mcp-name': params.uri } : {}),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  }
}

/** On its own connection: a kept one may have been closed. */
const alone = { connection: 'close' }

/** Sends one request of 2026-07-28, and returns the whole answer. */
export async function ask(
  url: string,
  token: string | undefined,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Asked> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headersFor(method, params, token), ...alone, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
  })
  const text = await response.text()
  return {
    status: response.status,
    challenge: response.headers.get('www-authenticate'),
    headers: response.headers,
    text,
    json: () => JSON.parse(text),
  }
}

export const read = (url: string, token: string | undefined, uri: string) => ask(url, token, 'resources/read', { uri })

/** A stream of changes, and its messages up to its end. */
export interface Listening {
  readonly status: number
  /** Resolves once the stream has sent its acknowledgement. */
  readonly acknowledged: Promise<unknown>
  /** Resolves with every message of the stream, once the server has ended it. */
  readonly ended: Promise<readonly { readonly method?: string; readonly id?: unknown; readonly result?: unknown }[]>
}

export async function listenTo(url: string, token: string, uris: readonly string[]): Promise<Listening> {
  const params = { notifications: { resourceSubscriptions: uris }, _meta: meta }
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headersFor('subscriptions/listen', {}, token), ...alone },
    body: JSON.stringify({ jsonrpc: '2.0', id: 'stream', method: 'subscriptions/listen', params }),
  })
  let acknowledge: (message: unknown) => void = () => {}
  const acknowledged = new Promise((resolve) => {
    acknowledge = resolve
  })
  const ended = (async () => {
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      if (text.includes('notifications/subscriptions/acknowledged')) acknowledge(text)
    }
    return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
  })()
  ended.catch(() => {})
  return { status: response.status, acknowledged, ended }
}

/** Waits until a condition holds, without a time-out of its own. */
export async function eventually<T>(look: () => Promise<T>, holds: (seen: T) => boolean, within = 40_000): Promise<T> {
  const end = performance.now() + within
  for (;;) {
    const seen = await look()
    if (holds(seen)) return seen
    if (performance.now() > end) throw new Error(`it did not happen in time: ${JSON.stringify(seen)}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
