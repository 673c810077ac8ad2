import { writeFile } from 'node:fs/promises'
import type { Ended, Plan, Step } from './steps.ts'

/** Time-out of one step, in milliseconds, far longer than any step takes. */
const stepTimeoutMs = 90_000

/** The functions with which a session does its steps. */
export interface Session {
  readonly plan: Plan
  /** Does one step. The runner judges the value that `work` resolves to. An exception becomes the error of the step. */
  step(step: Step, work: () => Promise<unknown>): Promise<void>
  /** Leaves a step out. `offers` has the names of everything that the client offers, as reported by the client itself. */
  leaveOut(step: Step, offers: readonly string[]): void
}

/** Runs a session, prints its result as one line of JSON, and ends the process. */
export async function runSession(work: (session: Session) => Promise<void>): Promise<void> {
  const plan = JSON.parse(process.argv.at(-1) ?? '') as Plan
  const ended: Partial<Record<Step, Ended>> = {}
  const session: Session = {
    plan,
    step: async (step, work) => {
      try {
        ended[step] = { value: (await within(work())) ?? null }
      } catch (error) {
        ended[step] = { error: messageOf(error) }
      }
    },
    leaveOut: (step, offers) => {
      ended[step] = { offers }
    },
  }
  try {
    await work(session)
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`)
    process.exitCode = 1
  }
  // Exit explicitly, because some clients keep timers and pipes open forever.
  process.stdout.write(`${JSON.stringify(ended)}\n`, () => process.exit())
}

/** Resolves to the error message of a call that must fail. Throws if the call succeeds. */
export async function refusal(call: Promise<unknown>): Promise<string> {
  const answer = await call.then(
    (value) => ({ value }),
    (error: unknown) => messageOf(error),
  )
  if (typeof answer === 'string') return answer
  throw new Error(`It was answered: ${JSON.stringify(answer.value).slice(0, 200)}`)
}

/** Repeats a request until its answer is accepted or the time-out expires. Resolves to the last answer. */
export async function askUntil<T>(ask: () => Promise<T>, isEnough: (answer: T) => boolean): Promise<T> {
  for (const end = Date.now() + stepTimeoutMs; ; ) {
    const answer = await ask()
    if (isEnough(answer) || Date.now() > end) return answer
  }
}

/** Changes the watched file, and resolves to the URI of the notification that the client gets. */
export async function changeWatched({ watched }: Plan, updated: Promise<string>): Promise<string> {
  await writeFile(watched.file, watched.text)
  return updated
}

/** Returns the names of all methods and properties of an object, including those of its classes. */
export function membersOf(object: object): readonly string[] {
  const names = new Set<string>()
  for (let at: object | null = object; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at))
    for (const name of Object.getOwnPropertyNames(at)) names.add(name)
  return [...names]
}

/** A promise, and the function that fulfils it. */
export function deferred<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((fulfil) => {
    resolve = fulfil
  })
  return { promise, resolve }
}

/** Expands the template of a plan. `{+path}` keeps slashes (RFC 6570, 3.2.3). */
export const expand = ({ template, path }: Plan['expanded']): string => template.replace('{+path}', path)

/** Expands the search template of a plan with only `q`, its word. Undefined variables are left out (RFC 6570, 3.2.8). */
export const searchUri = ({ searchTemplate, word }: Plan): string =>
  searchTemplate.replace(/\{\?[^}]*\}$/, `?q=${encodeURIComponent(word)}`)

/** Returns the documents in a search result (`application/json;format=hikidashi.SearchFound`). */
export function documentsFound(text: unknown): readonly string[] {
  const { hits } = JSON.parse(String(text)) as { hits: readonly { readonly document: string }[] }
  return hits.map(({ document }) => document)
}

/** Returns the documents in an answer of the tool `search_resources`. */
export function documentsOfTool(result: unknown): readonly string[] {
  const { results } = (result as { structuredContent: { results: readonly { readonly document: string }[] } })
    .structuredContent
  return results.map(({ document }) => document)
}

async function within<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing came within ${stepTimeoutMs} ms`)), stepTimeoutMs)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : JSON.stringify(error)
}
