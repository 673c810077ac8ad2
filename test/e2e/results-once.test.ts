import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Postgres, startPostgres } from '../support/postgres.ts'

// Several processes and a database: slow where the machine is busy.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

const program = fileURLToPath(new URL('../fixtures/results/ask.mjs', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'hikidashi-once-'))
const children: ChildProcessWithoutNullStreams[] = []
let files = 0
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** One process that asks. */
function asking(store: object, callers: number, file: string, ttlMs: number, way = '') {
  const child = spawn(process.execPath, [program, JSON.stringify(store), String(callers), file, String(ttlMs), way])
  children.push(child)
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const says = (what: string) =>
    vi.waitFor(() => expect(out.includes(what) ? out : `${out}${err}`).toContain(what), {
      timeout: 90_000,
      interval: 20,
    })
  return {
    says,
    begin: () => child.stdin.write('now\n'),
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
    answer: async () => {
      await ended
      const last = out.trim().split('\n').at(-1) ?? ''
      if (!last.startsWith('{')) throw new Error(`it did not answer: ${out}${err}`)
      return JSON.parse(last) as { readonly ids: readonly string[]; readonly count: number }
    },
  }
}

const newFile = async () => {
  const file = join(folder, `computed-${files++}`)
  await writeFile(file, '')
  return file
}
const linesIn = async (file: string) =>
  (await readFile(file, 'utf8'))
    .trim()
    .split('\n')
    .filter((line) => line !== '')

let postgres: Postgres
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres?.remove())

const engines: readonly (readonly [string, (name: string) => object])[] = [
  ['SQLite', (name) => ({ sqlite: { file: join(folder, name, 'store.sqlite') } })],
  ['PostgreSQL', (name) => ({ postgres: { connectionString: postgres.url, schema: `once_${name}` } })],
]

describe.each(engines)('with a store in %s,', (_, storeNamed) => {
  test('200 requests for one result at once, in two processes, share one computation', async () => {
    const store = storeNamed('many')
    const file = await newFile()
    const processes = [asking(store, 100, file, 30_000), asking(store, 100, file, 30_000)]
    for (const one of processes) await one.says('ready')
    for (const one of processes) one.begin()
    const answers = await Promise.all(processes.map((one) => one.answer()))
    expect(answers.map(({ count }) => count)).toEqual([100, 100])
    expect(new Set(answers.flatMap(({ ids }) => ids)).size).toBe(1)
    expect(await linesIn(file)).toHaveLength(1)
  })

  test('if a process dies while it computes a result, a waiting process computes the result', async () => {
    const store = storeNamed('dying')
    const file = await newFile()
    const dying = asking(store, 1, file, 2000, 'hang')
    await dying.says('ready')
    dying.begin()
    await dying.says('computing')
    const waiting = asking(store, 10, file, 2000)
    await waiting.says('ready')
    waiting.begin()
    await dying.kill()
    expect((await waiting.answer()).ids).toHaveLength(1)
    // One more where the machine is so slow that a lease is lost by somebody who lives.
    expect((await linesIn(file)).length).toBeGreaterThanOrEqual(2)
  })
})
