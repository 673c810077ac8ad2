import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import type { Plan } from './steps.ts'

/** A connection to the app server of Codex: JSON-RPC over standard input and output, as its editor extensions use it. */
export interface Codex {
  /** Resolves to the names of all methods of the app server, from its own schema. */
  methods(): Promise<readonly string[]>
  call<T>(method: string, params: object): Promise<T>
  /** Waits for a matching notification, including those that have already arrived. */
  notified(method: string, isIt: (params: Readonly<Record<string, unknown>>) => boolean): Promise<void>
  close(): void
}

const script = createRequire(import.meta.url).resolve('@openai/codex/bin/codex.js')

const run = promisify(execFile)

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

/** The name by which Codex knows the server. */
export const server = 'shop'

/** Starts Codex in a separate home, to which the built command adds the server. Codex uses the model at `modelUrl`. */
export async function startCodex(plan: Plan, modelUrl: string): Promise<Codex> {
  const home = join(plan.home, 'codex')
  await mkdir(home, { recursive: true })
  const env = { ...process.env, CODEX_HOME: home }
  const target = plan.transport === 'http' ? ['--url', plan.url] : ['--config', plan.config]
  await run(plan.command, [plan.hikidashi, 'add', 'codex', '--name', server, ...target], { env })
  const file = join(home, 'config.toml')
  // TOML requires keys without a table before the tables.
  const settings = [
    'model = "stand-in"',
    'model_provider = "stand-in"',
    'approval_policy = "never"',
    '[model_providers.stand-in]',
    'name = "Stand-in"',
    `base_url = "${modelUrl}"`,
    'wire_api = "responses"',
    '',
  ]
  await writeFile(file, settings.join('\n') + (await readFile(file, 'utf8')))
  const child = spawn(process.execPath, [script, 'app-server'], {
    env,
    cwd: plan.home,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const codex = speakWith(child, async () => {
    const folder = join(plan.home, 'schema')
    await run(process.execPath, [script, 'app-server', 'generate-json-schema', '--out', folder], { env })
    const schema = JSON.parse(await readFile(join(folder, 'ClientRequest.json'), 'utf8')) as {
      readonly oneOf: readonly { readonly properties: { readonly method: { readonly enum: readonly string[] } } }[]
    }
    return schema.oneOf.flatMap(({ properties }) => properties.method.enum)
  })
  await codex.call('initialize', { clientInfo: { name: 'session', version: '0' } })
  return codex
}

function speakWith(child: ChildProcess, methods: Codex['methods']): Codex {
  const waiting = new Map<number, (message: Message) => void>()
  const heard: Message[] = []
  const listeners = new Set<() => void>()
  let last = 0
  createInterface({ input: child.stdout ?? process.stdin }).on('line', (line) => {
    const message = JSON.parse(line) as Message
    if (message.id !== undefined && message.method === undefined) {
      waiting.get(message.id)?.(message)
      waiting.delete(message.id)
      return
    }
    heard.push(message)
    for (const listener of listeners) listener()
  })
  return {
    methods,
    call: <T>(method: string, params: object) =>
      new Promise<T>((resolve, reject) => {
        const id = ++last
        waiting.set(id, ({ result, error }) =>
          error === undefined ? resolve(result as T) : reject(new Error(error.message)),
        )
        child.stdin?.write(`${JSON.stringify({ id, method, params })}\n`)
      }),
    notified: (method, isIt) =>
      new Promise((resolve) => {
        const look = () => {
          if (!heard.some((message) => message.method === method && isIt(message.params ?? {}))) return
          listeners.delete(look)
          resolve()
        }
        listeners.add(look)
        look()
      }),
    close: () => {
      child.stdin?.end()
      child.kill()
    },
  }
}
