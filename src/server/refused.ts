import type { Audit, AuditRecord } from './audit.ts'
import { isObject } from './messages.ts'
import { createRate } from './rate.ts'

/** A request that was turned away before any source was asked. */
export interface TurnedAway {
  /** Why, as the audit log has it. */
  readonly outcome: string
  readonly status: number
  /** The id of the principal, where it is known. */
  readonly principal?: string
  /** Where it came from, where that is all that is known of who asked. */
  readonly address?: string
  /** What was asked for, where it was read. */
  readonly body?: unknown
}

export interface RefusalAudit {
  /** Records it, unless too many were. Never a token, nor anything of a header. */
  add(refusal: TurnedAway): void
  /** Tells what was left out. */
  close(): void
}

/** So many a second are recorded in the long run, and so many at once: of one client for one reason, and in all. */
const own = { perSecond: 1, burst: 20 }
const all = { perSecond: 20, burst: 500 }
/** How long it takes at most until the number of those that were left out is told, in milliseconds. */
const tellAfter = 10_000
/** The longest URI that is recorded whole, in characters: what is refused is said at little cost. */
const maxUri = 512

const verbs: ReadonlyMap<unknown, AuditRecord['verb']> = new Map([
  ['resources/list', 'list'],
  ['resources/templates/list', 'templates'],
  ['resources/read', 'read'],
  ['resources/directory/read', 'directory'],
  ['completion/complete', 'complete'],
  ['resources/subscribe', 'subscribe'],
  ['subscriptions/listen', 'subscribe'],
])

/** Records what is refused over HTTP: a line each, and of a flood a few, with how many were left out. */
export function createRefusalAudit(audit: Audit | undefined): RefusalAudit {
  if (audit === undefined) return { add: () => {}, close: () => {} }
  const ofOne = createRate(own)
  const ofAll = createRate(all)
  let leftOut = 0
  let timer: NodeJS.Timeout | undefined

  const tell = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (leftOut === 0) return
    audit({ ...stamp(), verb: 'refused', outcome: 'left-out', items: leftOut, ms: 0 })
    leftOut = 0
  }

  return {
    add: ({ outcome, status, principal, address, body }) => {
      const who = principal ?? address ?? ''
      if (ofOne.take(`${outcome} ${who}`) > 0 || ofAll.take('') > 0) {
        leftOut++
        timer ??= setTimeout(tell, tellAfter).unref()
        return
      }
      const { method, params } = isObject(body) ? body : {}
      const uri = isObject(params) && typeof params.uri === 'string' ? params.uri : undefined
      audit({
        ...stamp(),
        ...(principal === undefined ? {} : { principal }),
        ...(principal === undefined && address !== undefined ? { address } : {}),
        verb: verbs.get(method) ?? 'refused',
        ...(uri === undefined ? {} : { uri: uri.length > maxUri ? `${uri.slice(0, maxUri)}…` : uri }),
        outcome,
        status,
        ms: 0,
      })
    },
    close: tell,
  }
}

const stamp = () => ({ time: new Date().toISOString(), transport: 'http' as const })
