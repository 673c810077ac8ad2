import { createHash } from 'node:crypto'
import { type createAutoResetEvent, sleep } from '../../core/kit/abort.ts'
import type { Log } from '../../core/log.ts'
import type { JsonObject } from '../../core/tool.ts'
import type { EventDialect } from '../protocol/event-options.ts'
import type { EventReader } from '../protocol/event-reader.ts'
import { occurrenceToWire } from '../protocol/events.ts'
import {
  type DeliveryOutcome,
  type DeliveryState,
  newControlMessageId,
  type WebhookReceiver,
  type WebhookSender,
} from './delivery.ts'
import { maxBodyBytes } from './post.ts'

export interface WebhookSubscription extends WebhookReceiver, DeliveryState {
  reader: EventReader
  /** The position up to which every event was delivered or given up. */
  position: string
  maxAgeMs: number | undefined
  until: number
  isActive: boolean
  readonly news: ReturnType<typeof createAutoResetEvent>
  readonly over: AbortController
  release: () => void
}

interface RunOptions {
  readonly sender: WebhookSender
  readonly dialect: EventDialect
  readonly log: Log
  readonly clean: (text: string) => string
  readonly remove: (one: WebhookSubscription) => void
  readonly onTaken: (one: WebhookSubscription) => void
}

/** Pause after a failed read of the events, in milliseconds. */
const readAgainMs = 5000

/** Returns a function that sends the events of a subscription, in order and one after the other, until it ends. */
export function createEventDelivery({ sender, dialect, log, clean, remove, onTaken }: RunOptions) {
  const tellGap = (to: WebhookSubscription, cursor: string) =>
    sender.deliver(to, 'gap', newControlMessageId('gap'), JSON.stringify({ type: 'gap', cursor }), to.over.signal)

  const sendNews = async (to: WebhookSubscription): Promise<DeliveryOutcome> => {
    for (let more = true; more; ) {
      const { signal } = to.over
      const page = { limit: 100, ...(to.maxAgeMs === undefined ? {} : { maxAgeMs: to.maxAgeMs }) }
      const eventPage = await to.reader.since(to.position, page, { signal })
      to.maxAgeMs = undefined
      if (eventPage.gap) {
        const outcome = await tellGap(to, eventPage.occurrences.length === 0 ? eventPage.position : to.position)
        if (outcome !== 'taken') return outcome
      }
      for (const one of eventPage.occurrences) {
        if (signal.aborted) return 'failed'
        const cursor = one.position()
        const data = JSON.parse(
          JSON.stringify(one.data, (_, value) => (typeof value === 'string' ? clean(value) : value)),
        ) as JsonObject
        const event = { ...occurrenceToWire(to.name, { ...one, data }), cursor }
        const body = JSON.stringify(event)
        const message = dialect === 'sketch' ? event.eventId : messageOf(to, event.eventId)
        const isFit = Buffer.byteLength(body) <= maxBodyBytes
        const outcome = isFit ? await sender.deliver(to, 'event', message, body, signal) : await tellGap(to, cursor)
        if (outcome !== 'taken') return outcome
        to.position = cursor
      }
      to.position = eventPage.position
      if (eventPage.gap || eventPage.occurrences.length > 0) onTaken(to)
      more = eventPage.more
    }
    return 'taken'
  }

  return async (to: WebhookSubscription): Promise<void> => {
    const { signal } = to.over
    while (!signal.aborted) {
      if (to.isActive) {
        const outcome = await sendNews(to).catch((error: unknown) => {
          if (!signal.aborted)
            log('warn', 'the events of a webhook subscription cannot be read now', { subscription: to.id, error })
          return 'later' as const
        })
        if (outcome === 'gone') return remove(to)
        // Nothing is sent until the client refreshes the subscription.
        if (outcome === 'failed') to.isActive = false
        if (outcome === 'later') await sleep(readAgainMs, signal)
        else await to.news.wait()
      } else await to.news.wait()
    }
  }
}

/** The id of the message for an event: the same at each attempt. */
function messageOf({ id }: WebhookSubscription, eventId: string): string {
  return `msg_event_${createHash('sha256').update(`${id} ${eventId}`).digest('hex').slice(0, 32)}`
}
