import { createHash, randomBytes } from 'node:crypto'
import { chmod, link, readFile, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errorCodeOf, invalid } from '../core/errors.ts'
import { sleep } from '../core/kit/abort.ts'
import { makeFolder } from '../core/kit/make-folder.ts'
import { isObject, jsonIn } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import { createCursorSeal } from '../core/paging.ts'
import type { KeptSubscription, SubscriptionKeeper } from '../core/shared.ts'
import type { LazyStore } from '../providers/source.ts'
import { rowsIn } from '../store/store.ts'
import { defaultStoreFile } from './folder.ts'

const keyBytes = 32
/** Duration of a lease, after which that of a process that died is free. */
const leaseMs = 6000
/** Pause between two attempts to take the lease. */
const retryMs = 1000

interface KeeperOptions {
  readonly store: LazyStore
  /** Subscriptions of another configuration in the same store are left alone. */
  readonly config: { readonly file: string; readonly folder: string }
  readonly log: Log
}

/**
 * Keeps subscriptions of webhooks in the store. They are encrypted with a key in the state folder, so that a copy of
 * the store shows no secret and no endpoint.
 */
export function createSubscriptionKeeper({ store, config, log }: KeeperOptions) {
  const name = `webhooks/${createHash('sha256').update(config.file).digest('hex').slice(0, 16)}`
  let sealing: Promise<ReturnType<typeof createCursorSeal>> | undefined
  const seal = async () => {
    sealing ??= readKey(join(dirname(defaultStoreFile([config.folder])), 'webhooks.key')).then(
      (key) => createCursorSeal(key),
      (error: unknown) => {
        sealing = undefined
        throw error
      },
    )
    return sealing
  }
  const rows = async () => (await store.open()).collection(name)
  /** The latest state of subscriptions that is not written yet; `undefined` for one that has ended. */
  const waiting = new Map<string, KeptSubscription | undefined>()
  let writing: Promise<void> | undefined

  const write = async (id: string, one: KeptSubscription | undefined): Promise<void> => {
    try {
      if (one === undefined) return void (await (await rows()).delete(id))
      const value = Buffer.from((await seal()).seal([name, id], JSON.stringify(one)))
      await (await rows()).put({ key: id, value, expires: one.until })
    } catch (error) {
      log('warn', 'a webhook subscription could not be stored', { subscription: id, error })
    }
  }
  const writeAll = async (): Promise<void> => {
    for (const [id, one] of waiting) {
      waiting.delete(id)
      await write(id, one)
    }
    writing = undefined
  }
  const add = (id: string, one: KeptSubscription | undefined): void => {
    waiting.delete(id)
    waiting.set(id, one)
    writing ??= writeAll()
  }
  const parse = async (id: string, value: Uint8Array): Promise<readonly KeptSubscription[]> => {
    // If the key cannot be read now, the subscription stays.
    const { open } = await seal()
    try {
      const one = jsonIn(open([name, id], Buffer.from(value).toString()))
      return isKept(one) ? [one] : []
    } catch {
      log('warn', 'a webhook subscription cannot be continued, because it was stored with another key', {
        subscription: id,
      })
      add(id, undefined)
      return []
    }
  }

  const keeper: SubscriptionKeeper = {
    put: (one) => add(one.id, one),
    remove: (id) => add(id, undefined),
    written: async () => writing,
    all: async (signal) => {
      while (!signal.aborted) {
        const lease = await (await store.open()).lease(name, leaseMs)
        if (lease !== undefined) break
        await sleep(retryMs, signal)
      }
      const subscriptions: KeptSubscription[] = []
      if (signal.aborted) return subscriptions
      for await (const { key, value } of rowsIn(await rows(), { limit: 500, values: true }, signal))
        subscriptions.push(...(await parse(key, value)))
      return subscriptions
    },
  }
  return { ...keeper, close: async (): Promise<void> => writing }
}

function isKept(value: unknown): value is KeptSubscription {
  if (!isObject(value) || !isObject(value.given) || typeof value.until !== 'number') return false
  return ['id', 'name', 'url', 'secret', 'principal', 'credential', 'position'].every(
    (name) => typeof value[name] === 'string',
  )
}

/**
 * Reads the key in a file that only this user may read. A missing file is created.
 * @throws ResourceError `invalid` for a file that is not a key
 */
async function readKey(file: string): Promise<Uint8Array> {
  const readKeyFile = () => readFile(file)
  const key = await readKeyFile().catch(async (error: unknown) => {
    if (errorCodeOf(error) !== 'ENOENT') throw error
    const fresh = `${file}.${randomBytes(6).toString('hex')}.new`
    makeFolder(dirname(file), 0o700)
    await writeFile(fresh, randomBytes(keyBytes), { flag: 'wx', mode: 0o600, flush: true })
    // Another process may have created the file meanwhile: its key is used.
    await link(fresh, file).catch((fault: unknown) => {
      if (errorCodeOf(fault) !== 'EEXIST') throw fault
    })
    await unlink(fresh)
    return readKeyFile()
  })
  if (key.length !== keyBytes)
    throw invalid(
      `The file ${file} does not hold a key of this server. Move it away: the server then creates a new key.`,
      'configuration',
    )
  if (process.platform !== 'win32') await chmod(file, 0o600)
  return key
}
