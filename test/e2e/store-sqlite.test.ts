import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openStore, type Store } from '../../src/store/index.ts'
import { openDatabase } from '../../src/store/sqlite/database.ts'
import { migrate, migrations } from '../../src/store/sqlite/schema.ts'
import { createKeeper } from '../../src/store/sqlite/worker.ts'
import { requires } from '../support/require.ts'
import { eventually, untilAvailable as until } from '../support/watching.ts'

// Each takes a second or less; on a machine that is busy with other things, whatever that makes of it.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

let folder: string
let file: string
let warnings: string[]
const opened: Store[] = []

beforeEach(() => {
  folder = fs.mkdtempSync(join(tmpdir(), 'hikidashi-sqlite-'))
  file = join(folder, 'state', 'store.sqlite')
  warnings = []
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
  fs.rmSync(folder, { recursive: true, force: true })
})

const open = async (at = file): Promise<Store> => {
  const log = (_: string, message: string) => void warnings.push(message)
  const store = await openStore({ sqlite: { file: at }, log })
  opened.push(store)
  return store
}
const close = async () => void (await Promise.all(opened.splice(0).map((store) => store.close())))
const value = Buffer.from('value')
const keysOf = async (store: Store) =>
  (await store.collection('c').list({ limit: 1000, values: true })).map(({ key }) => key)
const aside = () => fs.readdirSync(dirname(file)).filter((name) => /damaged-[^-]*$/.test(name))

const terms = (i: number) => [`t${i % 5}`]

/** A store with rows in it, closed. */
async function fill(rows = 300, length = 500): Promise<void> {
  const store = await open()
  const collection = store.collection('c')
  await Promise.all(
    Array.from({ length: rows }, (_, i) =>
      collection.put({ key: `key-${i}`, value: Buffer.alloc(length, `value-${i};`), terms: terms(i) }),
    ),
  )
  await close()
}

/** Changes a file where it is: it stays the same one. */
function overwrite(at: number, bytes: Uint8Array): void {
  const opened = fs.openSync(file, 'r+')
  fs.writeSync(opened, bytes, 0, bytes.length, at)
  fs.closeSync(opened)
}

describe('the file of a store', () => {
  test('is readable by its user only, and so is its folder', async () => {
    const store = await open()
    await store.collection('c').put({ key: 'a', value })
    expect(fs.statSync(dirname(file)).mode & 0o777).toBe(0o700)
    for (const name of fs.readdirSync(dirname(file)))
      expect(fs.statSync(join(dirname(file), name)).mode & 0o777).toBe(0o600)
    await close()
    fs.chmodSync(file, 0o644)
    await open()
    expect(fs.statSync(file).mode & 0o777).toBe(0o600)
  })

  test('is not opened if it, or a file beside it, is a link, or if it is a folder', async () => {
    fs.mkdirSync(dirname(file))
    const elsewhere = join(folder, 'elsewhere')
    for (const name of [file, `${file}-wal`, `${file}-shm`, `${file}-guard`]) {
      fs.writeFileSync(elsewhere, 'kept')
      fs.symlinkSync(elsewhere, name)
      await expect(open()).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining(' of the store is '),
        detail: { reason: 'configuration' },
      })
      expect(fs.readFileSync(elsewhere, 'utf8')).toBe('kept')
      fs.rmSync(name)
    }
    fs.mkdirSync(file)
    await expect(open()).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining(' of the store is '),
      detail: { reason: 'configuration' },
    })
  })

  test('has the application id of a store, the version of its schema, and a write-ahead log', async () => {
    await fill(1)
    const database = new DatabaseSync(file)
    expect(database.prepare('pragma application_id').get()).toEqual({ application_id: 0x68696b69 })
    expect(database.prepare('pragma user_version').get()).toEqual({ user_version: migrations.length })
    expect(database.prepare('pragma journal_mode').get()).toEqual({ journal_mode: 'wal' })
    database.close()
  })

  test('is refused if it belongs to another program, and is not changed', async () => {
    fs.mkdirSync(dirname(file))
    const database = new DatabaseSync(file)
    database.exec('create table theirs (a); insert into theirs values (1)')
    await expect(open()).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('another program'),
      detail: { reason: 'configuration' },
    })
    expect(database.prepare('select a from theirs').all()).toHaveLength(1)
    database.close()
    expect(aside()).toEqual([])
  })

  test('is refused if it has a newer version, and is not changed', async () => {
    await fill(1)
    const database = new DatabaseSync(file)
    database.exec('pragma user_version = 99')
    database.close()
    await expect(open()).rejects.toMatchObject({
      kind: 'invalid',
      detail: { reason: 'configuration' },
      message: expect.stringContaining('its version is 99, and this hikidashi reads up to 3'),
    })
    expect(aside()).toEqual([])
  })

  test('serves no text that another program has changed in it', async () => {
    const put = { key: 'k', version: '1', edition: 1, labels: { mount: 'm' }, value: 'known', parts: [] }
    const terms = [{ term: 't', weight: 1 }]
    for (const change of [
      `update parts set value = 'other'`,
      `update texts set value = 'other'`,
      `update texts set parts = 9`,
    ]) {
      const texts = (await open()).texts('x')
      await texts.put([{ ...put, parts: [{ value: 'part', terms: ['t'], length: 1 }] }])
      const ids = await texts.find({ terms, limit: 9 })
      expect(await texts.read(ids)).toMatchObject([{ key: 'k', value: 'part', text: 'known' }])
      const before = aside().length
      const database = new DatabaseSync(file)
      database.exec(change)
      database.close()
      // It is begun anew: nothing is there, and nothing wrong.
      expect(await texts.read(ids), change).toEqual([])
      expect(aside().length, change).toBe(before + 1)
      await close()
    }
  })

  test('is migrated to a newer version in one transaction, and is refused by an older version of the program', async () => {
    await fill(3)
    const database = openDatabase(file, 1000)
    const version = () => database.prepare('pragma user_version').get()?.user_version
    const columns = () =>
      database
        .prepare(`select name from pragma_table_info('leases')`)
        .all()
        .map(({ name }) => name)
    const next = 'alter table leases add column more text'
    expect(() => migrate(database, [...migrations, next, 'this is no statement'])).toThrow()
    expect([version(), columns()]).toEqual([migrations.length, ['name', 'holder', 'expires']])
    migrate(database, [...migrations, next])
    expect([version(), columns()]).toEqual([migrations.length + 1, ['name', 'holder', 'expires', 'more']])
    expect(database.prepare('select count(*) as n from rows').get()?.n).toBe(3)
    // What is known here is one version less.
    expect(() => migrate(database)).toThrow(/newer/)
    database.close()
  })

  test('is created again after it was deleted while it was open', async () => {
    const store = await open()
    await store.collection('c').put({ key: 'a', value })
    const abort = new AbortController()
    const told: unknown[] = []
    const news = await store.watch('c', abort.signal)
    const listening = (async () => {
      for await (const change of news) told.push(change)
    })()
    for (const name of fs.readdirSync(dirname(file))) fs.rmSync(join(dirname(file), name))
    await eventually(() => told.length > 0, 'that is told')
    expect(await store.collection('c').get('a')).toBeUndefined()
    const row = await store.collection('c').put({ key: 'b', value })
    expect(await store.collection('c').get('b')).toEqual(row)
    expect(fs.existsSync(file)).toBe(true)
    abort.abort()
    await listening
  })
})

describe('a damaged file of a store', () => {
  const damages: readonly (readonly [string, () => void])[] = [
    ['is text', () => fs.writeFileSync(file, 'This is no database at all.\n'.repeat(300))],
    ['is shorter than its header', () => fs.writeFileSync(file, 'x')],
    ['has lost its end', () => fs.truncateSync(file, 20_000)],
    ['has lost its end in the middle of a page', () => fs.truncateSync(file, 9_999)],
    ['begins with zeros', () => overwrite(0, new Uint8Array(4096))],
    ['has pages of another file', () => overwrite(8192, Buffer.alloc(60_000, 'some other file '))],
  ]
  test.each(damages)('that %s is renamed with a warning, and a new one is created', async (_, damage) => {
    await fill()
    damage()
    const damaged = fs.readFileSync(file)
    const store = await open()
    expect(await keysOf(store)).toEqual([])
    await store.collection('c').put({ key: 'new', value })
    expect(await keysOf(store)).toEqual(['new'])
    const [kept, ...more] = aside()
    expect(more).toEqual([])
    expect(Buffer.compare(fs.readFileSync(join(dirname(file), kept ?? '')), damaged)).toBe(0)
    expect(warnings).toEqual([expect.stringContaining(kept ?? 'a name')])
  })

  test('that is empty is treated as new', async () => {
    await fill()
    fs.truncateSync(file)
    const store = await open()
    expect(await keysOf(store)).toEqual([])
    await store.collection('c').put({ key: 'new', value })
    expect(await keysOf(store)).toEqual(['new'])
  })

  test('serves no value that changed on the disk, even if SQLite detects no damage', async () => {
    await fill()
    const at = fs.readFileSync(file).indexOf('value-77;')
    overwrite(at, Buffer.from('VALUE'))
    const store = await open()
    expect(await store.collection('c').get('key-77')).toBeUndefined()
    expect(aside()).toHaveLength(1)
    await store.collection('c').put({ key: 'new', value })
    expect(await keysOf(store)).toEqual(['new'])
  })

  test('serves no row whose time changed on the disk', async () => {
    await fill(3)
    const database = new DatabaseSync(file)
    database.exec(`update rows set modified = modified + 1 where key = 'key-1'`)
    database.close()
    const store = await open()
    expect(await store.collection('c').list({ limit: 9 })).toEqual([])
    expect(aside()).toHaveLength(1)
  })

  test('is renamed once if several stores that have it open read it at the same time', async () => {
    // More than SQLite keeps in memory.
    await fill(300, 20_000)
    const stores = await Promise.all([open(), open(), open()])
    for (const store of stores) expect(await store.collection('c').size()).toMatchObject({ rows: 300 })
    // What each of them reads is damaged behind their backs.
    overwrite(4096, Buffer.alloc(fs.statSync(file).size - 4096, 'something else '))
    const answers = await Promise.all(stores.map((store) => keysOf(store)))
    expect(answers).toEqual([[], [], []])
    await Promise.all(stores.map((store, i) => store.collection('c').put({ key: `by-${i}`, value })))
    for (const store of stores) expect(await keysOf(store)).toEqual(['by-0', 'by-1', 'by-2'])
    expect(aside()).toHaveLength(1)
  })

  test('is renamed once if several stores open it at the same time', async () => {
    await fill()
    overwrite(0, Buffer.alloc(100, 'x'))
    const stores = await Promise.all([open(), open(), open(), open()])
    await Promise.all(stores.map((store, i) => store.collection('c').put({ key: `by-${i}`, value })))
    for (const store of stores) expect(await keysOf(store)).toHaveLength(4)
    expect(aside()).toHaveLength(1)
  })

  test('with random bytes anywhere serves none of them, and accepts new rows', async () => {
    await fill(100)
    const sound = fs.readFileSync(file)
    let state = 42
    const next = (most: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      return Math.floor((state / 2 ** 32) * most)
    }
    for (let round = 0; round < 20; round++) {
      // Another file each time: connections are not over before their thread is.
      file = join(folder, `${round}`, 'store.sqlite')
      fs.mkdirSync(dirname(file))
      fs.writeFileSync(file, sound)
      const bytes = Buffer.from(Array.from({ length: 1 + next(300) }, () => next(256)))
      overwrite(next(sound.length - bytes.length), bytes)
      const keeper = createKeeper({ file }, () => {})
      const listed = () => keeper.perform((from) => from.list('c', { limit: 1000, values: true }))
      for (const { key, value } of listed())
        expect(Buffer.compare(value, Buffer.alloc(500, `value-${key.slice(4)};`))).toBe(0)
      keeper.perform((to) => to.put('c', { key: 'new', value, terms: [] }))
      expect(listed().map(({ key }) => key)).toContain('new')
      keeper.close()
    }
  })
})

/** Has another process hold the lock for writing a database. */
async function lockElsewhere(path: string) {
  const script = `
    const { DatabaseSync } = await import(${JSON.stringify(import.meta.resolve('@photostructure/sqlite'))})
    const database = new DatabaseSync(process.argv[1])
    database.exec('begin immediate')
    process.stdout.write('locked')
    process.stdin.once('data', () => {
      database.exec('rollback')
      database.close()
      process.exit(0)
    })`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script, path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  await Promise.race([
    once(child.stdout, 'data'),
    ended.then(([code]) => Promise.reject(new Error(`It ended: ${code}`))),
  ])
  return {
    release: async () => {
      child.stdin.write('now')
      await ended
    },
  }
}

describe('a store in SQLite', () => {
  test('refuses a write as busy while another process writes for too long, and keeps its rows', async () => {
    const store = await open()
    await store.collection('c').put({ key: 'a', value })
    // In this process it would not do: SQLite's locks are those of a process, and the store has a copy of SQLite of its own.
    const other = await lockElsewhere(file)
    const put = store.collection('c').put({ key: 'b', value })
    await expect(put).rejects.toMatchObject({ kind: 'unavailable', detail: { fault: 'busy' } })
    expect(await keysOf(store)).toEqual(['a'])
    await other.release()
    await store.collection('c').put({ key: 'c', value })
    expect(await keysOf(store)).toEqual(['a', 'c'])
  })

  test('answers a request that waits for other requests longer than its time-out', async () => {
    const store = await open()
    await store.collection('c').put({ key: 'a', value })
    const other = await lockElsewhere(file)
    // Each of them waits five seconds for the lock.
    const puts = ['b', 'c', 'd'].map((key) => store.collection('c').put({ key, value }))
    const found = store.collection('c').get('a')
    const settled = await Promise.allSettled(puts)
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    await expect(found).resolves.toMatchObject({ key: 'a' })
    await other.release()
  })
})

/** Whether small disks can be made here: by root, where that is allowed to mount them. */
function canMount(): boolean {
  const probe = fs.mkdtempSync(join(tmpdir(), 'hikidashi-mount-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', probe], { stdio: 'ignore' })
    execFileSync('umount', [probe], { stdio: 'ignore' })
    return true
  } catch {
    return false
  } finally {
    fs.rmSync(probe, { recursive: true, force: true })
  }
}

requires(
  'mount',
  process.platform === 'linux' && canMount(),
  'only root can mount a small disk',
)('on a limited disk,', () => {
  let disk: string
  beforeEach(() => {
    disk = join(folder, 'disk')
    fs.mkdirSync(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk])
    file = join(disk, 'store.sqlite')
  })
  afterEach(async () => {
    await close()
    execFileSync('umount', ['-l', disk])
  })
  const remount = (mode: 'ro' | 'rw') => execFileSync('mount', ['-o', `remount,${mode}`, disk])

  test('a store on a full disk fails writes only, until there is room', async () => {
    const store = await open()
    const rows = store.collection('c')
    const large = Buffer.alloc(20_000, 'x')
    const written: string[] = []
    let failed: unknown
    for (let i = 0; failed === undefined; i++) {
      const key = `k${String(i).padStart(3, '0')}`
      await rows.put({ key, value: large }).then(
        () => written.push(key),
        (error) => {
          failed = error
        },
      )
    }
    expect(failed).toMatchObject({ kind: 'unavailable', detail: { fault: 'full' } })
    expect(String(failed)).not.toContain(disk)
    expect(written.length).toBeGreaterThan(5)
    expect(await keysOf(store)).toEqual(written)
    execFileSync('mount', ['-o', 'remount,size=16m', disk])
    await rows.put({ key: 'new', value: large })
    expect(await keysOf(store)).toEqual([...written, 'new'])
    expect(aside()).toEqual([])
  })

  test('a store whose disk was full when it was opened continues once there is room', async () => {
    await fill(50)
    fs.writeFileSync(join(disk, 'filler'), '')
    const filler = fs.openSync(join(disk, 'filler'), 'w')
    expect(() => {
      for (;;) fs.writeSync(filler, Buffer.alloc(4096))
    }).toThrow(/ENOSPC/)
    fs.closeSync(filler)
    const store = await open()
    await expect(store.collection('c').put({ key: 'a', value: Buffer.alloc(9000) })).rejects.toMatchObject({
      kind: 'unavailable',
      detail: { fault: 'full' },
    })
    fs.rmSync(join(disk, 'filler'))
    await until(() => store.collection('c').put({ key: 'a', value }))
    expect(await keysOf(store)).toHaveLength(51)
    expect(aside()).toEqual([])
  })

  test('a read-only store fails writes with the reason, and continues once it is writable', async () => {
    await fill(3)
    remount('ro')
    const store = await open()
    expect(warnings).toEqual([expect.stringContaining('is on a file system that is mounted read-only')])
    const refusal = { kind: 'unavailable', detail: { fault: 'read-only' } }
    await expect(store.collection('c').put({ key: 'a', value })).rejects.toMatchObject(refusal)
    await expect(store.lease('l', 1000)).rejects.toMatchObject(refusal)
    remount('rw')
    await until(() => store.collection('c').put({ key: 'a', value }))
    expect(await keysOf(store)).toHaveLength(4)
    expect(aside()).toEqual([])
  })
})
