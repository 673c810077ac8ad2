import { isObject, jsonIn } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import type { Delivery } from '../core/shared.ts'
import type { LazyStore } from '../providers/source.ts'

const collection = 'deliveries'
/** How long deliveries are kept, in milliseconds, and how many. */
const bounds = { age: 7 * 24 * 3_600_000, rows: 10_000 }
const writesPerEviction = 1000
/** Of deliveries that wait for the store. Further ones are not recorded. */
const maxWaiting = 1000

/** Records webhook deliveries in the store: time, recipient and outcome of each, without contents and secrets. */
export function createDeliveries(store: LazyStore, log: Log) {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  let count = 0
  const write = async (delivery: Delivery): Promise<void> => {
    try {
      const rows = (await store.open()).collection(collection)
      const key = `${delivery.time} ${String(++count).padStart(9, '0')}`
      await rows.put({ key, value: Buffer.from(JSON.stringify(delivery)), terms: [delivery.subscription] })
      if (count % writesPerEviction === 1) await rows.evict(bounds)
    } catch (error) {
      log('warn', 'a delivery of a webhook could not be recorded', { error })
    } finally {
      waiting--
    }
  }
  return {
    add: (delivery: Delivery): void => {
      if (waiting >= maxWaiting) return
      waiting++
      last = last.then(() => write(delivery))
    },
    /** Returns the newest delivery first. */
    latest: async (limit: number, subscription?: string): Promise<readonly Delivery[]> => {
      const rows = (await store.open()).collection(collection)
      const query = subscription === undefined ? {} : { term: subscription }
      const deliveryRows = await rows.list({ newest: true, limit, values: true, ...query })
      return deliveryRows.map(({ value }) => jsonIn(Buffer.from(value).toString())).filter(isDelivery)
    },
    close: async (): Promise<void> => void (await last),
  }
}

function isDelivery(value: unknown): value is Delivery {
  return isObject(value) && typeof value.time === 'string' && typeof value.subscription === 'string'
}
