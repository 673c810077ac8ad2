import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw, inflateRaw } from 'node:zlib'
import { createMemoryTexts, type EarlierTexts } from '../core/earlier.ts'
import { isResourceError } from '../core/errors.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { Store } from '../store/index.ts'
import type { PlannedMount } from './plan.ts'

const collection = 'read-texts'
/** Limits of the kept texts: their number, their compressed bytes, and their age in milliseconds. */
const bounds = { rows: 4000, bytes: 64 * 1024 * 1024, age: 7 * 24 * 3_600_000 }
const putsPerEviction = 50
const maxTextBytes = 64 * 1024 * 1024

const [deflate, inflate] = [promisify(deflateRaw), promisify(inflateRaw)]

/**
 * Stores the texts of reads, without known secrets, so that a difference can be made after a restart, and by another
 * replica. After a change of the mounts, the earlier texts are unknown.
 */
export function createTextHistory(
  open: () => Promise<Store>,
  mounts: readonly PlannedMount[],
  scrubber: Scrubber | undefined,
): EarlierTexts {
  const memory = createMemoryTexts()
  const configured = JSON.stringify(mounts.map(({ address, config }) => [address, config]))
  const way = createHash('sha256').update(configured).digest('base64url').slice(0, 16)
  let puts = 0
  const rows = async () => (await open()).collection(collection)
  const lasting: Pick<EarlierTexts, 'get' | 'put'> = {
    get: async (key) => {
      try {
        const row = await (await rows()).get(`${way}/${key}`)
        if (row === undefined) return undefined
        return (await inflate(row.value, { maxOutputLength: maxTextBytes })).toString('utf16le')
      } catch (error) {
        if (isResourceError(error)) return undefined
        throw error
      }
    },
    put: async (key, text) => {
      try {
        const texts = await rows()
        await texts.put({ key: `${way}/${key}`, value: await deflate(Buffer.from(text, 'utf16le')) })
        if (++puts % putsPerEviction === 1) await texts.evict(bounds)
      } catch (error) {
        if (!isResourceError(error)) throw error
      }
    },
  }
  return {
    clean: (text) => scrubber?.scrub(text) ?? text,
    get: async (key) => (await memory.get(key)) ?? lasting.get(key),
    put: async (key, text) => {
      if ((await memory.get(key)) === text) return
      await memory.put(key, text)
      await lasting.put(key, text)
    },
    lasting,
  }
}
