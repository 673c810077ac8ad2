// A process that uses a store as a test says: `store-child.mjs OPTIONS TASK ARGUMENTS…`, with OPTIONS as JSON. It prints each
// completed step as a line of JSON before the next one, so every printed step was completed when the process was killed.
import { writeSync } from 'node:fs'
import { once, openStore } from '../../dist/store/index.js'

const [options = '{}', task, ...given] = process.argv.slice(2)
const say = (what) => writeSync(1, `${JSON.stringify(what)}\n`)
/** A value of varying length, which is recognized as wrong if it is torn. `storedValue` in the test makes the same. */
const valueAt = (key, i) => Buffer.alloc(200 + ((i * 7919) % 9000), `${key}#${i};`)

const store = await openStore(JSON.parse(options))

const tasks = {
  /** Writes, replaces and removes rows, forever. */
  write: async (collection, name) => {
    const rows = store.collection(collection)
    for (let i = 0; ; i++) {
      const key = `${name}/${i % 50}`
      const row = await rows.put({ key, value: valueAt(key, i), terms: [`of:${name}`, `n:${i % 7}`] })
      say({ key, i, revision: row.revision })
      if (i % 10 === 9) {
        const gone = `${name}/${(i - 5) % 50}`
        say({ removing: gone })
        await rows.delete(gone)
        say({ gone })
      }
    }
  },
  /** Puts, replaces and removes texts, forever: the i-th has `1 + i % 4` parts, each with the terms `all` and `vI`. */
  texts: async (name, folder) => {
    const texts = store.texts(name)
    for (let i = 0; ; i++) {
      const key = `${folder}/${i % 20}`
      const terms = ['all', `${folder}.v${i}`]
      const parts = Array.from({ length: 1 + (i % 4) }, (_, n) => ({
        value: `${key}#${n}`.repeat(50),
        terms,
        length: 2,
      }))
      await texts.put([{ key, version: `${i}`, edition: 1, labels: { mount: 'm' }, value: key, parts }])
      say({ key, i })
      if (i % 10 === 9) {
        const gone = `${folder}/${(i - 5) % 20}`
        say({ removing: gone })
        await texts.remove([gone])
        say({ gone })
      }
    }
  },
  /** Computes a value once for many simultaneous callers. */
  once: async (collection, key, callers, ms) => {
    let computed = 0
    say({ ready: true })
    await new Promise((resolve) => process.stdin.once('data', resolve))
    const compute = async () => {
      computed++
      say({ computing: process.pid })
      await new Promise((resolve) => setTimeout(resolve, Number(ms)))
      return { value: Buffer.from(`by ${process.pid}`) }
    }
    const all = Array.from({ length: Number(callers) }, () => once(store, collection, key, compute, { ttlMs: 2000 }))
    const values = (await Promise.all(all)).map(({ value }) => Buffer.from(value).toString())
    say({ computed, values: [...new Set(values)], callers: values.length })
  },
  /** Writes a few rows, removes one and reads them all, despite errors. */
  few: async (collection) => {
    const rows = store.collection(collection)
    const attempt = async (what, act) => {
      try {
        await act()
        say({ did: what })
      } catch ({ kind, detail }) {
        say({ failed: what, kind, reason: detail?.reason })
      }
    }
    for (let i = 0; i < 4; i++)
      await attempt(`put ${i}`, () => rows.put({ key: `${i}`, value: valueAt(`${i}`, i), terms: ['t'] }))
    await attempt('delete 0', () => rows.delete('0'))
    for (const row of await rows.list({ limit: 9, values: true }).catch(() => []))
      say({ read: row.key, whole: valueAt(row.key, Number(row.key)).equals(Buffer.from(row.value)) })
  },
  /** Takes a lease, and keeps it until the process dies. */
  hold: async (name, ttlMs) => {
    say({ held: (await store.lease(name, Number(ttlMs))) !== undefined })
    await new Promise((resolve) => setTimeout(resolve, 600_000))
  },
}

await tasks[task](...given)
await store.close()
process.exit(0)
