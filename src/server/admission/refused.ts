import { defined } from '../../core/kit/defined.ts'
import { isObject } from '../protocol/messages.ts'
import type { Audit, AuditRecord } from '../telemetry/audit.ts'
import { createRate } from './limits.ts'

/** A request that was refused before any source was called. */
export interface TurnedAway {
  /** Reason in the audit log. */
  readonly outcome: string
  readonly status: number
  /** Id of the principal, if it is known. */
  readonly principal?: string
  /** Network address of the client, when the principal is unknown. */
  readonly address?: string
  /** Body of the request, if it was read. */
  readonly body?: unknown
}

interface RefusalAudit {
  /** Records a refusal, unless the rate limit is exceeded. Never a token, nor any other header. */
  add(refusal: TurnedAway): void
  /** Records the number of omitted refusals. */
  close(): void
}

/** Token buckets of the records: for one client and one reason, and for all. */
const perClient = { perSecond: 1, burst: 20 }
const overall = { perSecond: 20, burst: 500 }
/** Maximum delay of the record with the number of omitted refusals, in milliseconds. */
const maxReportDelayMs = 10_000
/** Maximum length of a URI in a record, in characters: the record of a refusal must cost little. */
const maxUriLength = 512

const verbs: ReadonlyMap<unknown, AuditRecord['verb']> = new Map([
  ['resources/list', 'list'],
  ['resources/templates/list', 'templates'],
  ['resources/read', 'read'],
  ['resources/directory/read', 'directory'],
  ['skills/list', 'skills'],
  ['skills/get', 'skill'],
  ['completion/complete', 'complete'],
  ['resources/subscribe', 'subscribe'],
  ['subscriptions/listen', 'subscribe'],
])

/** Creates the audit of refusals over HTTP: one record each; in a flood only a few, and the number of the omitted ones. */
export function createRefusalAudit(audit: Audit | undefined): RefusalAudit {
  if (audit === undefined) return { add: () => {}, close: () => {} }
  const ofOne = createRate(perClient)
  const ofAll = createRate(overall)
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
        timer ??= setTimeout(tell, maxReportDelayMs).unref()
        return
      }
      const { method, params } = isObject(body) ? body : {}
      const uri = isObject(params) && typeof params.uri === 'string' ? params.uri : undefined
      audit({
        ...stamp(),
        ...defined({ principal }),
        ...(principal === undefined && address !== undefined ? { address } : {}),
        verb: verbs.get(method) ?? 'refused',
        ...(uri === undefined ? {} : { uri: uri.length > maxUriLength ? `${uri.slice(0, maxUriLength)}…` : uri }),
        outcome,
        status,
        ms: 0,
      })
    },
    close: tell,
  }
}

const stamp = () => ({ time: new Date().toISOString(), transport: 'http' as const })
