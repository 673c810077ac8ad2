import { existsSync } from 'node:fs'
import { appendFile, readFile, rename, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { defaultConfig, stateFolder } from '../../config/state-folder.ts'
import { makeFolder } from '../../core/kit/make-folder.ts'
import { defined, isObject, jsonIn } from '../../core/kit/object.ts'
import type { BriefRequest, HookAnswer } from '../operations/joined.ts'
import { connect, socketsOf } from '../operations/joining.ts'
import type { Io } from '../terminal/io.ts'
import { createTextLog } from '../terminal/log.ts'
import { createColumns, escapeText, readableUri } from '../terminal/text.ts'
import { formatAnswer, type HookQuestion, parseQuestion } from './hooks.ts'

export interface HookOptions {
  readonly config?: string
  readonly budget?: number
  readonly minScore?: number
  /** How long the host may have to wait, in milliseconds. */
  readonly waitMs: number
}

/** The record of one answer to a host. */
export interface HookRecord {
  /** ISO 8601. */
  readonly time: string
  readonly host: string
  readonly folder: string
  /** The beginning of the prompt, without what looks like a secret. */
  readonly prompt: string
  readonly ms: number
  /** The origin of the answer: a running server of the folder, or its index on the disk. */
  readonly from?: 'server' | 'index'
  readonly tokens: number
  readonly score: number
  /** Why nothing was given. */
  readonly silence?: string
  readonly items: readonly {
    readonly uri: string
    readonly level: string
    readonly tokens: number
    readonly why: string
  }[]
}

/** Maximum size of what a host writes, in bytes. */
const maxInputBytes = 4 * 1024 * 1024
/** Maximum size of the log, in bytes. A longer one is put aside, and replaces an earlier one. */
const maxLogBytes = 512 * 1024

/**
 * Answers the hook of a host with a context for the prompt: from the server that runs for the folder, or else from its index on the
 * disk. It never fails: a host would show that, or stop the prompt. A log records each answer and its reasons.
 */
export async function answerHook(host: string, options: HookOptions, io: Io): Promise<void> {
  const begun = performance.now()
  const signal = AbortSignal.timeout(options.waitMs)
  let question: HookQuestion | undefined
  let brief: Partial<HookAnswer> = {}
  let from: HookRecord['from']
  try {
    question = parseQuestion(host, jsonIn(await inputOf(signal)), process.env)
    if (question === undefined) return
    const asked = await within(signal, askServer(question, options))
    from = asked === undefined ? 'index' : 'server'
    brief = asked ?? (await within(signal, askIndex(question, options, signal, io)))
    if (brief.text) await io.out.write(formatAnswer(host, brief.text))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    brief = { silence: signal.aborted ? `there was no answer within ${options.waitMs} ms` : `it failed: ${reason}` }
  }
  if (question !== undefined)
    await record(recordOf(host, question, brief, performance.now() - begun, from), io).catch(() => {})
}

async function inputOf(signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  signal.addEventListener('abort', () => process.stdin.destroy())
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxInputBytes) throw new Error('the host wrote too much')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  work.catch(() => {})
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('too late')), { once: true })
    if (signal.aborted) reject(new Error('too late'))
    work.then(resolve, reject)
  })
}

/** Asks a running server of the folder. `undefined`: none runs. */
async function askServer(
  { prompt, folder }: HookQuestion,
  { config, budget, minScore }: HookOptions,
): Promise<Partial<HookAnswer> | undefined> {
  const found = [resolve(folder, config ?? defaultConfig)].filter((file) => config !== undefined || existsSync(file))
  for (const path of socketsOf(found[0] ?? folder)) {
    const socket = await connect(path)
    if (socket === undefined) continue
    const request: BriefRequest = { hikidashi: 'brief', prompt, ...defined({ budget, minScore }) }
    socket.end(`${JSON.stringify(request)}\n`)
    const chunks: Buffer[] = []
    for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk)
    const answer = jsonIn(Buffer.concat(chunks).toString('utf8'))
    if (isObject(answer)) return answer as Partial<HookAnswer>
  }
  return undefined
}

/** Asks the index on the disk, as it is: bringing it up to date would take too long. Its hits are read anew. */
async function askIndex(
  { prompt, folder }: HookQuestion,
  { config, budget, minScore }: HookOptions,
  signal: AbortSignal,
  io: Io,
): Promise<HookAnswer> {
  const [{ requireLocal, openLocal }, { answerBrief, hookIsOff }, { cleanView }, { searchedMounts }] =
    await Promise.all([
      import('../operations/local.ts'),
      import('../operations/joined.ts'),
      import('../operations/clean-view.ts'),
      import('../../config/plan.ts'),
    ])
  process.chdir(folder)
  const quiet = { ...io, say: () => {} }
  const local = await requireLocal(defined({ config }), quiet)
  if (local.config?.context?.hook === false) return hookIsOff
  // Opening a mount that no search covers, such as git, takes longer than the whole answer.
  const { complete, ...known } = local
  const mounts = searchedMounts((await complete?.()) ?? local.mounts)
  const catalog = await openLocal({ ...known, mounts }, createTextLog(quiet, 'error'), io.secrets)
  const view = cleanView(catalog.view(local.principal), io.secrets)
  return answerBrief(view, { prompt, ...defined({ budget, minScore }) }, { signal })
}

function recordOf(
  host: string,
  { folder }: HookQuestion,
  { shown = '', tokens = 0, score = 0, silence, items = [] }: Partial<HookAnswer>,
  ms: number,
  from: HookRecord['from'],
): HookRecord {
  return {
    ...{ time: new Date().toISOString(), host, folder },
    prompt: shown,
    ...{ ms: Math.round(ms), tokens, score: Math.round(score * 100) / 100 },
    ...defined({ from, silence }),
    items: items.map(({ uri, level, tokens: each, explanation }) => ({
      ...{ uri, level, tokens: each },
      why: explanation.factors.map(({ because }) => because).join(', '),
    })),
  }
}

const logFile = () => join(stateFolder(), 'hooks.jsonl')

async function record(one: HookRecord, { secrets }: Io): Promise<void> {
  makeFolder(stateFolder(), 0o700)
  const size = await stat(logFile()).then(
    ({ size }) => size,
    () => 0,
  )
  if (size > maxLogBytes) await rename(logFile(), `${logFile()}.1`)
  await appendFile(logFile(), `${secrets.scrub(JSON.stringify(one))}\n`, { mode: 0o600 })
}

/** Reads the newest records of hooks, the newest first. */
export async function readHookRecords(most: number): Promise<readonly HookRecord[]> {
  const text = await readFile(logFile(), 'utf8').catch(() => '')
  return text
    .trimEnd()
    .split('\n')
    .flatMap((line) => {
      const value = jsonIn(line)
      return isObject(value) && Array.isArray(value.items) ? [value as unknown as HookRecord] : []
    })
    .slice(-most)
    .reverse()
}

/** Formats a record for people. */
export function formatHookRecord({
  time,
  host,
  folder,
  prompt,
  ms,
  from,
  tokens,
  score,
  silence,
  items,
}: HookRecord): string {
  const head = `${time}  ${host}  ${escapeText(folder)}\n  “${escapeText(prompt)}”`
  const given = silence === undefined ? `${tokens} tokens` : `nothing: ${silence}`
  const facts = `  ${given}; score ${score}; ${ms} ms${from === undefined ? '' : `, from the ${from}`}`
  const layOut = createColumns([0])
  const rows = items.map((item) => [String(item.tokens), item.level, escapeText(readableUri(item.uri)), item.why])
  return `${[head, facts, ...(rows.length === 0 ? [] : [layOut([['tokens', 'level', 'resource', 'why'], ...rows]).trimEnd()])].join('\n')}\n`
}
