import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { defaultStoreFile } from '../../src/config/folder.ts'
import { createSubscriptionKeeper } from '../../src/config/subscriptions.ts'
import type { KeptSubscription } from '../../src/core/shared.ts'
import { createLazyStore } from '../../src/providers/source.ts'

const cleanups: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
  vi.unstubAllEnvs()
})

const one: KeptSubscription = {
  ...{ id: 'sub_1', name: 'resource.changed', given: { uri: 'x://m' }, url: 'https://localhost/hook' },
  ...{ secret: 'whsec_x', principal: 'p', credential: 'c', until: Date.now() + 3_600_000, position: '1' },
}

/** Opens keepers over one store in one state folder. */
async function begin() {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-kept-'))
  cleanups.push(() => rm(folder, { recursive: true, force: true }))
  vi.stubEnv(process.platform === 'win32' ? 'LOCALAPPDATA' : 'XDG_STATE_HOME', join(folder, 'state'))
  const said: string[] = []
  const open = (file = 'hikidashi.json') => {
    const log = (_: string, text: string) => void said.push(text)
    const store = createLazyStore({ sqlite: { file: join(folder, 'store.sqlite') } }, log)
    const keeper = createSubscriptionKeeper({ store, config: { file: join(folder, file), folder }, log })
    const close = async () => {
      await keeper.close()
      await store.close()
    }
    cleanups.push(close)
    return { ...keeper, close }
  }
  const { signal } = new AbortController()
  return { open, said, signal, key: join(dirname(defaultStoreFile([folder])), 'webhooks.key') }
}

test('the next process gets the latest state of the webhook subscriptions, and a process with another configuration gets none', async () => {
  const { open, signal, said } = await begin()
  const first = open()
  first.put(one)
  first.put({ ...one, id: 'sub_2' })
  first.put({ ...one, position: '2' })
  first.remove('sub_2')
  await first.close()
  expect(await open('other.json').all(signal)).toEqual([])
  expect(await open().all(signal)).toEqual([{ ...one, position: '2' }])
  expect(said).toEqual([])
})

test('the next process gets no webhook subscriptions until the process before it has ended', async () => {
  const { open, signal } = await begin()
  const first = open()
  expect(await first.all(signal)).toEqual([])
  let isThere = false
  const later = open()
    .all(signal)
    .then((all) => {
      isThere = true
      return all
    })
  first.put(one)
  await first.close()
  expect(isThere).toBe(false)
  expect(await later).toEqual([one])
})

test('a webhook subscription stays in the store while the file of its key cannot be used', async () => {
  const { open, signal, said, key } = await begin()
  const first = open()
  first.put(one)
  await first.close()
  const right = await readFile(key)
  await writeFile(key, 'short')
  const second = open()
  await expect(second.all(signal)).rejects.toThrow(/does not hold a key/)
  await second.close()
  await writeFile(key, right)
  expect(await open().all(signal)).toEqual([one])
  expect(said).toEqual([])
})

test('a webhook subscription that was stored with another key is removed, with a note in the log', async () => {
  const { open, signal, said, key } = await begin()
  const first = open()
  first.put(one)
  await first.close()
  await writeFile(key, Buffer.alloc(32))
  const second = open()
  expect(await second.all(signal)).toEqual([])
  expect(said.join()).toContain('stored with another key')
  await second.close()
  expect(await open().all(signal)).toEqual([])
  expect(said).toHaveLength(1)
})
