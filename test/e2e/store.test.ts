import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { openStore, type Row, type Store, type StoreOptions } from '../../src/store/index.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { requires } from '../support/require.ts'
import { someOf, volumeOf } from '../support/volume.ts'
import { eventually } from '../support/watching.ts'

/** A line of JSON that a child printed. */
type Said = Readonly<Record<string, unknown>>

/** A process that runs the built `store-child.mjs`. */
interface StoreChild {
  readonly pid: number
  readonly said: readonly Said[]
  /** Waits until its output satisfies a condition. */
  until(holds: (said: readonly Said[]) => boolean): Promise<readonly Said[]>
  /** Lets a waiting task begin. */
  go(): void
  signal(name: NodeJS.Signals): void
  /** Resolves with its output, once it has exited or was killed. */
  readonly ended: Promise<readonly Said[]>
}

const script = join(import.meta.dirname, '../fixtures/store-child.mjs')
const running = new Set<ChildProcess>()

function startStoreChild(options: StoreOptions, task: string, ...values: readonly (string | number)[]): StoreChild {
  return startUnder([], options, task, ...values)
}

/** @param command The command that starts the process, such as `strace` with its options. */
function startUnder(
  command: readonly string[],
  options: StoreOptions,
  task: string,
  ...values: readonly (string | number)[]
): StoreChild {
  const [program = '', ...rest] = [...command, process.execPath, script, JSON.stringify(options), task]
  const child = spawn(program, [...rest, ...values.map(String)], { stdio: ['pipe', 'pipe', 'pipe'] })
  running.add(child)
  const said: Said[] = []
  let errors = ''
  let notice = () => {}
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  child.stdin.on('error', () => {})
  createInterface({ input: child.stdout }).on('line', (line) => {
    const one = parse(line)
    if (one !== undefined) said.push(one)
    notice()
  })
  let over = false
  const ended = new Promise<readonly Said[]>((resolve) => {
    child.once('close', () => {
      running.delete(child)
      over = true
      notice()
      resolve(said)
    })
  })
  return {
    pid: child.pid ?? 0,
    said,
    until: async (holds) => {
      while (!holds(said)) {
        if (over) throw new Error(`It ended before: ${JSON.stringify(said.slice(-3))} ${errors}`)
        await new Promise<void>((resolve) => {
          notice = resolve
        })
      }
      return said
    },
    go: () => child.stdin.write('go\n'),
    signal: (name) => void child.kill(name),
    ended,
  }
}

/** Ends the processes that a failed test has left. */
function killStoreChildren(): void {
  for (const child of running) child.kill('SIGKILL')
}

/** Returns the value that a child writes under a key the i-th time. */
function storedValue(key: string, i: number): Buffer {
  return Buffer.alloc(200 + ((i * 7919) % 9000), `${key}#${i};`)
}

/** The last line may be incomplete if the child was killed. */
function parse(line: string): Said | undefined {
  try {
    return JSON.parse(line) as Said
  } catch {
    return undefined
  }
}

// Each takes a second or less; on a machine that is busy with other things, whatever that makes of it.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

/** What happens to a store between processes, and to processes: rows 1, 3 and 8 of the faults. */

let folder: string
let server: Postgres
let store: Store | undefined

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hikidashi-store-'))
  server = await startPostgres()
})
afterEach(async () => {
  killStoreChildren()
  await store?.close()
  store = undefined
})
afterAll(async () => {
  await server?.remove()
  rmSync(folder, { recursive: true, force: true })
})

let made = 0
const engines: readonly (readonly [string, () => StoreOptions])[] = [
  ['SQLite', () => ({ sqlite: { file: join(folder, `${++made}`, 'store.sqlite') } })],
  ['PostgreSQL', () => ({ postgres: { connectionString: server.url, schema: `s${++made}`, connections: 4 } })],
]

/** Numbers that look like chance, and are the same each time. */
function chance(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** What a child has said it had done with a key. */
interface Done {
  /** Its last write. */
  readonly written: number
  /** Whether it was removed after that; `perhaps`: it was being removed when the child was killed. */
  readonly removed: boolean | 'perhaps'
}

function doneBy(said: readonly Said[]): ReadonlyMap<string, Done> {
  const done = new Map<string, Done>()
  for (const { key, i, removing, gone } of said) {
    if (typeof key === 'string') done.set(key, { written: Number(i), removed: false })
    const removed = removing ?? gone
    const known = typeof removed === 'string' ? done.get(removed) : undefined
    if (typeof removed === 'string' && known !== undefined)
      done.set(removed, { ...known, removed: removing === undefined ? true : 'perhaps' })
  }
  return done
}

/** What two children had done when they were killed, at any moment. */
async function killedAt(next: () => number, where: StoreOptions, task: string, name: string) {
  const children = ['a', 'b'].map((each) => startStoreChild(where, task, name, each))
  await Promise.all(
    children.map(async (child) => {
      const most = 1 + Math.floor(next() * 60)
      await child.until((said) => said.length >= most)
      child.signal('SIGKILL')
    }),
  )
  const said = await Promise.all(children.map(({ ended }) => ended))
  // A transaction whose COMMIT has arrived ends after its client.
  if ('postgres' in where) while ((await server.run(clients)).length > 0) await sleep(10)
  return said.flatMap((each) => [...doneBy(each)])
}

const clients = `SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`

/** Which write of its key a row is of: whole, as it was written. */
function timeOf(row: Row): number {
  const i = Number(/#(\d+);/.exec(Buffer.from(row.value.subarray(0, 200)).toString())?.[1] ?? Number.NaN)
  expect(storedValue(row.key, i).equals(row.value), `${row.key} is whole`).toBe(true)
  return i
}

describe.each(engines)('a store in %s that several processes use', (engine, options) => {
  test('loses no acknowledged write, and serves no partial value, whenever a process is killed', async () => {
    const where = options()
    const next = chance(6)
    // A server writes by itself: nobody who is killed was writing to its files.
    const rounds = engine === 'SQLite' ? volumeOf(10, 3) : volumeOf(3, 2)
    for (let round = 0; round < rounds; round++) {
      const collection = `round-${round}`
      const done = await killedAt(next, where, 'write', collection)
      store = await openStore(where)
      const rows = store.collection(collection)
      const found = new Map((await rows.list({ limit: 1000, values: true })).map((row) => [row.key, timeOf(row)]))
      for (const [key, { written, removed }] of done) {
        const now = found.get(key)
        // What it did last may have been done without having been said.
        if (now === undefined) expect(removed, `${key} is not lost`).not.toBe(false)
        else if (removed === true) expect(now, `${key} does not come back`).toBeGreaterThan(written)
        else expect(now, `${key} is the last that was written`).toBeGreaterThanOrEqual(written)
      }
      const { rows: count, bytes } = await rows.size()
      expect(count).toBe(found.size)
      expect(bytes).toBe([...found].reduce((sum, [key, i]) => sum + storedValue(key, i).byteLength, 0))
      for (let n = 0; n < 7; n++) {
        const named = await rows.list({ limit: 1000, term: `n:${n}` })
        expect(named.map(({ key }) => key).sort()).toEqual(
          [...found].flatMap(([key, i]) => (i % 7 === n ? [key] : [])).sort(),
        )
      }
      await store.close()
    }
    if ('sqlite' in where)
      expect(readdirSync(join(where.sqlite.file, '..')).filter((name) => name.includes('damaged'))).toEqual([])
  })

  test('has each text completely or not at all, whenever a process is killed', async () => {
    const where = options()
    const next = chance(7)
    for (let round = 0; round < volumeOf(3, 2); round++) {
      const name = `texts-${round}`
      const done = await killedAt(next, where, 'texts', name)
      store = await openStore(where)
      const texts = store.texts(name)
      const found = new Map((await texts.list({ limit: 1000 })).map(({ key, version }) => [key, Number(version)]))
      for (const [key, { written, removed }] of done) {
        const now = found.get(key)
        if (now === undefined) expect(removed, `${key} is not lost`).not.toBe(false)
        else if (removed === true) expect(now, `${key} does not come back`).toBeGreaterThan(written)
        else expect(now, `${key} is the last that was put`).toBeGreaterThanOrEqual(written)
      }
      const parts = [...found.values()].reduce((sum, i) => sum + 1 + (i % 4), 0)
      expect(await texts.size()).toMatchObject({ texts: found.size, parts, length: 2 * parts })
      const all = await texts.find({ terms: [{ term: 'all', weight: 1 }], limit: 1000 })
      expect((await texts.read(all)).length).toBe(parts)
      // Nothing is left of what was put before.
      const terms = [...found].map(([key, i]) => `${key.slice(0, 1)}.v${i}`)
      expect(await texts.counts(['all', ...terms])).toEqual([parts, ...[...found.values()].map((i) => 1 + (i % 4))])
      await store.close()
    }
    if ('sqlite' in where)
      expect(readdirSync(join(where.sqlite.file, '..')).filter((each) => each.includes('damaged'))).toEqual([])
  })

  test('computes once a value that 200 callers in two processes request', async () => {
    const where = options()
    const children = [1, 2].map(() => startStoreChild(where, 'once', 'results', 'the question', 100, 500))
    await Promise.all(children.map((child) => child.until((said) => said.some(({ ready }) => ready === true))))
    for (const child of children) child.go()
    const said = (await Promise.all(children.map(({ ended }) => ended))).flat()
    const done = said.filter(({ callers }) => callers !== undefined)
    expect(done.map(({ callers }) => callers)).toEqual([100, 100])
    expect(done.reduce((sum, { computed }) => sum + Number(computed), 0)).toBe(1)
    expect(new Set(done.flatMap(({ values }) => values))).toHaveProperty('size', 1)
  })

  test('lets another process compute when the computing process is killed', async () => {
    const where = options()
    const [first, second] = [1, 2].map(() => startStoreChild(where, 'once', 'results', 'the question', 5, 600_000))
    await first!.until((said) => said.some(({ ready }) => ready === true))
    await second!.until((said) => said.some(({ ready }) => ready === true))
    first!.go()
    await first!.until((said) => said.some(({ computing }) => computing !== undefined))
    second!.go()
    store = await openStore(where)
    first!.signal('SIGKILL')
    // Its lease is over after two seconds.
    await second!.until((said) => said.some(({ computing }) => computing === second!.pid))
    second!.signal('SIGKILL')
    await second!.ended
  })

  test('releases the lease of a holder that was killed, and of one that hangs', async () => {
    const where = options()
    store = await openStore(where)
    for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
      const holder = startStoreChild(where, 'hold', signal, 1500)
      await holder.until((said) => said.some(({ held }) => held === true))
      expect(await store.lease(signal, 60_000)).toBeUndefined()
      holder.signal(signal)
      let taken: unknown
      const ask = async () => {
        while (taken === undefined) {
          taken = await store?.lease(signal, 60_000)
          if (taken === undefined) await new Promise((resolve) => setTimeout(resolve, 50))
        }
      }
      await Promise.all([ask(), eventually(() => taken !== undefined, 'the lease is free', 40_000)])
      holder.signal('SIGKILL')
      await holder.ended
    }
  })
})

describe('an SQLite store that other processes write', () => {
  test('is not taken for damaged when it is opened meanwhile, and loses nothing', async () => {
    const file = join(folder, `${++made}`, 'store.sqlite')
    const children = ['a', 'b'].map((each) => startStoreChild({ sqlite: { file } }, 'texts', 'texts', each))
    await Promise.all(children.map((child) => child.until((said) => said.length > 50)))
    const warnings: string[] = []
    const log = (level: string, message: string) => {
      if (level === 'warn') warnings.push(message)
    }
    for (let opened = 0; opened < 20; opened++) {
      store = await openStore({ sqlite: { file }, log })
      // Each child keeps 18 to 20 texts.
      expect((await store.texts('texts').size()).texts).toBeGreaterThan(30)
      await store.close()
      const written = children.map(({ said }) => said.length)
      await Promise.all(children.map((child, at) => child.until((said) => said.length > (written[at] ?? 0))))
    }
    expect(warnings).toEqual([])
    expect(readdirSync(join(file, '..')).filter((name) => name.includes('damaged'))).toEqual([])
  })
})

/** Whether failures of system calls can be arranged here. */
function canInject(): boolean {
  try {
    execFileSync('strace', ['-f', '-o', '/dev/null', '-e', 'inject=fdatasync:error=EIO:when=1', 'true'])
    return true
  } catch {
    return false
  }
}

requires(
  'strace',
  canInject(),
  'strace is not there, or may not trace',
)('on a disk that fails,', () => {
  // The N-th call fails, for N = 1, 2, 3 and on.
  test.each([
    ['openat', 6],
    ['pread64', 5],
    ['pwrite64', 8],
    ['ftruncate', 1],
  ])(
    'an SQLite store loses no acknowledged write, whichever call of %s fails',
    async (call, most) => {
      const run = async (n: number) => {
        const file = join(folder, `${call}-${n}`, 'store.sqlite')
        const paths = ['', '-wal', '-shm', '-guard'].flatMap((end) => ['-P', `${file}${end}`])
        const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:error=EIO:when=${n}`]
        const child = startUnder(
          ['strace', '-f', '-qq', '-o', '/dev/null', ...paths, ...inject],
          { sqlite: { file } },
          'few',
          'c',
        )
        const said = await child.ended
        const did = said.flatMap((one) => (typeof one.did === 'string' ? [one.did] : []))
        const failed = said.filter((one) => one.failed !== undefined)
        expect(did.length + failed.length, `${call} ${n}: nothing is left out`).toBe(5)
        for (const one of failed) expect(one).toMatchObject({ kind: 'unavailable' })
        for (const one of said) if (one.read !== undefined) expect(one.whole).toBe(true)
        const after = await openStore({ sqlite: { file } })
        const rows = await after.collection('c').list({ limit: 9, values: true })
        for (const row of rows) expect(storedValue(row.key, Number(row.key)).equals(row.value)).toBe(true)
        const found = new Set(rows.map(({ key }) => key))
        for (const key of ['1', '2', '3']) if (did.includes(`put ${key}`)) expect(found).toContain(key)
        if (did.includes('delete 0')) expect(found).not.toContain('0')
        await after.collection('c').put({ key: 'after', value: Buffer.from('') })
        await after.close()
        expect(readdirSync(join(file, '..')).filter((name) => name.includes('damaged'))).toEqual([])
        return failed.length
      }
      let failures = 0
      const calls = Array.from({ length: most }, (_, at) => at + 1)
      for (const n of someOf(call, calls, 2)) failures += await run(n)
      // It did fail: these are calls that matter.
      expect(failures).toBeGreaterThan(0)
    },
    120_000,
  )
})
