import { notFound } from '../../core/errors.ts'
import type { Provider } from '../../core/provider.ts'
import { text } from '../../schema/fields.ts'
import { defineSource, type OpenSource } from '../source.ts'

export const source = defineSource({
  about: 'The time of this machine.',
  shape: { zone: text.optionalKey('The time zone, such as "Asia/Tokyo". By default "UTC".') },
  effects: { options: { zone: 'none' } },
})

/** Serves the time of this machine. */
export function clock(zone = 'UTC'): Provider {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' })
  return {
    async *list({ prefix = '', after = '' }, { signal }) {
      signal.throwIfAborted()
      if ('now.txt'.startsWith(prefix) && after < 'now.txt') yield { path: 'now.txt', mimeType: 'text/plain' }
    },
    async read({ path }, { signal }) {
      signal.throwIfAborted()
      if (path !== 'now.txt') throw notFound()
      return [{ text: `${format.format(new Date())}\n`, mimeType: 'text/plain' }]
    },
  }
}

/** Opens the clock. */
export const open: OpenSource<typeof source> = async ({ zone }) => clock(zone)
