import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { defaultConfigName } from '../../config/state-folder.ts'
import type { Brief } from '../../context/brief.ts'
import { defined, isObject, jsonIn } from '../../core/kit/object.ts'
import type { BriefRequest } from '../operations/joined.ts'
import { connectToSocket } from '../operations/joining/socket.ts'
import { socketPathsOf } from '../operations/joining/socket-path.ts'
import type { Secrets } from '../terminal/secrets.ts'
import { type HookRecord, writeHookRecord } from './hook-records.ts'
import { formatHookAnswer, type HookQuestion, parseHookQuestion, promptHooks } from './hooks.ts'

export interface HookOptions {
  readonly host: string
  readonly config?: string
  readonly budget?: number
  readonly minScore?: number
  /** Maximum time since the start of this process, in milliseconds. */
  readonly waitMs: number
}

const maxInputBytes = 4 * 1024 * 1024
const maxShown = 120

/**
 * Parses a command line `pack --hook HOST …` with plain values, without commander, which takes time to load. Returns
 * `undefined` for another command line.
 */
export function parseHookOptions(words: readonly string[]): HookOptions | undefined {
  const option = { type: 'string' } as const
  const options = { hook: option, config: option, budget: option, 'min-score': option, wait: option }
  try {
    const { values } = parseArgs({ args: words.slice(1), options })
    const { hook: host = '', config, budget, 'min-score': minScore, wait = String(defaultHookWaitMs) } = values
    const isPlain =
      Object.hasOwn(promptHooks, host) &&
      [budget ?? '1', wait].every((number) => /^[1-9]\d{0,8}$/.test(number)) &&
      /^(?:0(?:\.\d{1,9})?|1)$/.test(minScore ?? '0')
    const numbers = { budget: parseOptionalNumber(budget), minScore: parseOptionalNumber(minScore) }
    return isPlain ? { host, waitMs: Number(wait), ...defined({ config, ...numbers }) } : undefined
  } catch {
    return undefined
  }
}

export const defaultHookWaitMs = 1000

const parseOptionalNumber = (text: string | undefined) => (text === undefined ? undefined : Number(text))

/**
 * Answers the hook of a host with a context for the prompt: from the server that runs for the folder, or else from its
 * index on the disk. It does not reject, because a host would show a failure, or stop the prompt.
 */
export async function answerHook({ host, waitMs, ...options }: HookOptions): Promise<void> {
  const signal = AbortSignal.timeout(Math.max(0, Math.round(waitMs - performance.now())))
  let question: HookQuestion | undefined
  let brief: Partial<Brief> = {}
  let from: HookRecord['from']
  const cleaning = loadCleaning()
  cleaning.catch(() => {})
  try {
    question = parseHookQuestion(host, jsonIn(await inputOf(signal)), process.env)
    if (question === undefined) return
    const answer = await rejectOnAbort(signal, askServer(question, options))
    from = answer === undefined ? 'index' : 'server'
    brief = answer ?? (await rejectOnAbort(signal, askIndex(question, options, signal, cleaning)))
    if (brief.text) await print(formatHookAnswer(host, brief.text))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    brief = { silence: signal.aborted ? `there was no answer within ${waitMs} ms` : `the hook failed: ${reason}` }
  }
  if (question === undefined) return
  const { prompt, folder } = question
  const { text: _, tokens = 0, score = 0, silence, items = [] } = brief
  try {
    const { secrets, redactPhrase } = await cleaning
    const record: HookRecord = {
      ...{ time: new Date().toISOString(), host, folder },
      prompt: redactPhrase(prompt.slice(0, 8 * maxShown)).slice(0, maxShown),
      ...{ ms: Math.round(performance.now()), tokens, score: Math.round(score * 100) / 100 },
      ...defined({ from, silence }),
      items: items.map(({ uri, level, tokens: each, explanation }) => ({
        ...{ uri, level, tokens: each },
        why: explanation.factors.map(({ because }) => because).join(', '),
      })),
    }
    await writeHookRecord(record, secrets.scrub)
  } catch {
    // The record is not worth a failure.
  }
}

async function loadCleaning() {
  const [{ secretsOfProcess }, { redactPhrase }] = await Promise.all([
    import('../terminal/secrets.ts'),
    import('../../secrets/find.ts'),
  ])
  return { secrets: secretsOfProcess(), redactPhrase }
}

function print(text: string): Promise<void> {
  return new Promise((resolve, fail) => {
    process.stdout.once('error', fail).write(text, (error) => (error ? fail(error) : resolve()))
  })
}

async function inputOf(signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  signal.addEventListener('abort', () => process.stdin.destroy())
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxInputBytes) throw new Error('the input from the host is longer than 4 MiB')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function rejectOnAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  work.catch(() => {})
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('too late')), { once: true })
    if (signal.aborted) reject(new Error('too late'))
    work.then(resolve, reject)
  })
}

/** Time-out in milliseconds. A stopped process accepts a connection, but sends no greeting. */
const greetingMs = 300

type AskOptions = Omit<HookOptions, 'host' | 'waitMs'>

async function askServer(
  { prompt, folder }: HookQuestion,
  { config, budget, minScore }: AskOptions,
): Promise<Partial<Brief> | undefined> {
  const files = [resolve(folder, config ?? defaultConfigName)].filter(
    (file) => config !== undefined || existsSync(file),
  )
  for (const path of socketPathsOf(files[0] ?? folder)) {
    const server = await connectToSocket(path, greetingMs)
    if (typeof server === 'string') continue
    const { socket } = server
    const request: BriefRequest = { hikidashi: 'brief', prompt, ...defined({ budget, minScore }) }
    socket.end(`${JSON.stringify(request)}\n`)
    const chunks: Buffer[] = []
    for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk)
    const answer = jsonIn(Buffer.concat(chunks).toString('utf8'))
    if (isObject(answer)) return answer as Partial<Brief>
  }
  return undefined
}

/** Updating the index would take too long. The contents of the hits are current. */
async function askIndex(
  { prompt, folder }: HookQuestion,
  { config, budget, minScore }: AskOptions,
  signal: AbortSignal,
  cleaning: Promise<{ readonly secrets: Secrets }>,
): Promise<Brief> {
  const [
    { requireLocalSetUp, openLocalCatalog },
    { briefFor, disabledBrief },
    { cleanView },
    { searchedMounts },
    { secrets },
  ] = await Promise.all([
    import('../operations/local.ts'),
    import('../../context/brief.ts'),
    import('../operations/clean-view.ts'),
    import('../../config/plan.ts'),
    cleaning,
  ])
  process.chdir(folder)
  const local = await requireLocalSetUp(defined({ config }), { secrets, say: () => {} })
  if (local.config?.context?.hook === false) return disabledBrief
  // Mounts that no search covers, and those that a survey of the folder finds, would take too long to open.
  const { complete: _, ...known } = local
  const catalog = await openLocalCatalog({ ...known, mounts: searchedMounts(local.mounts) }, () => {}, secrets)
  // The mounts are opened while the prompt is analysed.
  void catalog.openAll()
  const view = cleanView(catalog.view(local.principal), secrets)
  return briefFor(view, { prompt, now: Date.now(), signal, ...defined({ budget, minScore }) })
}
