import type { Client } from './declared.ts'
import type { AuditRecord } from './served.ts'
import { type Ended, type Result, type Step, steps, type Transport } from './steps.ts'

/** A check of the value of each step. It returns a fault. `undefined`: the value is right. */
export type Expected = Readonly<Record<Step, (value: unknown) => string | undefined>>

/** A step that a client cannot do. */
export interface Unable {
  /** Why the client cannot do the step, for the table in the documentation. */
  readonly reason: string
  /** Matches none of the names that the client offers. If a later version offers a matching name, the session must use it. */
  readonly offers: RegExp
}

/** The result of the session of one client over one transport. */
export interface Outcome {
  readonly client: Client
  readonly transport: Transport
  /** The protocol revision that client and server agreed on, as the server recorded it. */
  readonly revision: string
  readonly did: readonly Step[]
  readonly faults: readonly string[]
}

/** Verbs of the audit log that prove a step. The log must have one of them. */
const proofs: Readonly<Record<Step, readonly string[]>> = {
  list: ['list'],
  templates: ['templates'],
  text: ['read'],
  japanese: ['read'],
  blob: ['read'],
  expanded: ['read'],
  absent: ['read'],
  searchTool: ['call'],
  searchTemplate: ['read'],
  subscribe: ['subscribe'],
  completion: ['complete'],
  prompts: ['prompts'],
  prompt: ['prompt'],
}

/**
 * Judges a session. Every step must be done correctly, or be left out by a client that is declared unable to do it and whose interface
 * offers nothing for it. The audit log of the server must show the same.
 */
export function judgeSession(
  { client, transport, code }: { readonly client: Client; readonly transport: Transport; readonly code: number | null },
  result: Result,
  {
    expected,
    audit,
  }: {
    readonly expected: Expected
    readonly audit: readonly AuditRecord[]
  },
): Outcome {
  const { unable } = client
  const faults: string[] = []
  if (code !== 0) faults.push(`the session ended with ${code ?? 'a signal'}`)
  const did: Step[] = []
  const verbs = new Set(audit.filter((record) => record.transport === transport).map(({ verb }) => verb))
  for (const step of steps) {
    const fault = judgeStep(result[step], expected[step], unable[step])
    if (fault !== undefined) faults.push(`${step}: ${fault}`)
    else if (unable[step] === undefined) {
      did.push(step)
      if (!proofs[step].some((verb) => verbs.has(verb)))
        faults.push(`${step}: the server has no record of ${proofs[step].join(' or ')}`)
    }
  }
  const revisions = [...new Set(audit.flatMap(({ revision }) => revision ?? []))]
  if (revisions.length !== 1) faults.push(`it spoke ${revisions.join(' and ') || 'no revision'}`)
  return { client, transport, revision: revisions.join(', '), did, faults }
}

function judgeStep(
  ended: Ended | undefined,
  check: (value: unknown) => string | undefined,
  unable: Unable | undefined,
): string | undefined {
  if (ended === undefined) return 'it was not done'
  if ('offers' in ended) {
    if (unable === undefined) return 'it was left out, which is not declared'
    if (ended.offers.length === 0) return 'it was left out without a look at what the client offers'
    const way = ended.offers.find((name) => unable.offers.test(name))
    return way === undefined ? undefined : `it was left out, but the client offers ${way}`
  }
  if (unable !== undefined) return 'it is declared as impossible, and was done'
  return 'error' in ended ? ended.error : check(ended.value)
}

/** Returns a check that a value equals another one. */
export function exactly(wanted: string): (value: unknown) => string | undefined {
  return (value) => (value === wanted ? undefined : `not ${brief(wanted)}, but ${brief(value)}`)
}

/** Returns a check that a value is a list of exactly these texts, each once, in any order. */
export function exactlyThese(wanted: readonly string[]): (value: unknown) => string | undefined {
  return (value) => {
    if (!Array.isArray(value)) return `no list, but ${brief(value)}`
    const found = new Set<unknown>(value)
    const missing = wanted.filter((text) => !found.has(text))
    const known = new Set<unknown>(wanted)
    const strange = value.filter((text) => !known.has(text))
    if (missing.length > 0) return `${missing.length} of ${wanted.length} are missing, such as ${brief(missing[0])}`
    if (strange.length > 0) return `${strange.length} do not belong there, such as ${brief(strange[0])}`
    return value.length === wanted.length ? undefined : `some of the ${value.length} are there more than once`
  }
}

/** Returns a check that a value is a list of at least a hundred of these texts, each once, and of nothing else. */
export function someOf(known: readonly string[]): (value: unknown) => string | undefined {
  return (value) => {
    const found = Array.isArray(value) ? new Set<unknown>(value) : new Set()
    if (found.size < 100) return `only ${found.size} of ${known.length}`
    return exactlyThese(known.filter((text) => found.has(text)))(value)
  }
}

/** Returns a check that a value is a list that contains this text. */
export function including(wanted: string): (value: unknown) => string | undefined {
  return (value) =>
    Array.isArray(value) && value.includes(wanted) ? undefined : `without ${brief(wanted)}: ${brief(value)}`
}

/** Returns a check that a value is a text that matches a pattern. */
export function matching(pattern: RegExp): (value: unknown) => string | undefined {
  return (value) => (typeof value === 'string' && pattern.test(value) ? undefined : `not ${pattern}: ${brief(value)}`)
}

const brief = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 200)
