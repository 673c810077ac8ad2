import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { parseSearchAnswer, type SearchAnswer, staleNote } from '../../src/core/search-answer.ts'
import { compileTemplate } from '../../src/core/template.ts'
import { type Running, start } from '../support/cli.ts'
import { type Database, startDatabase } from '../support/database.ts'
import { volume } from '../support/volume.ts'
import { createRandom } from './history.ts'

// G13: a search that is asked to be fresh finds every write that was finished before it, on each source, also after a kill.

/** Number of writes, each of which is searched: 10,000 at full volume. A share of the volume does less than its share, because kills take a larger part of its time. */
const writes = Math.max(30, Math.round(10_000 * volume ** 2.5))
vi.setConfig({ testTimeout: 3_600_000 + writes * 5000, hookTimeout: 120_000 })
/** The server is killed once in so many writes. Another process may keep the index only when the lease of the killed one is over. */
const perKill = Math.max(40, Math.ceil(writes / 50))
const seed = Number(process.env.HIKIDASHI_SEED ?? Math.floor(Math.random() * 2 ** 31))

const home = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-fresh-')))
const at = (...names: readonly string[]) => join(home, ...names)
const git = (...args: readonly string[]) => execFileSync('git', ['-C', at('repository'), ...args], { stdio: 'pipe' })

let database: Database
let sqlite: InstanceType<typeof DatabaseSync>
let server: Running
let client: Client
/** Number of answers that said that they came too early. */
let late = 0

beforeAll(async () => {
  database = await startDatabase('CREATE TABLE notes (id int PRIMARY KEY, text text)')
  mkdirSync(at('docs'))
  mkdirSync(at('repository'))
  git('init', '--quiet')
  git('config', 'user.email', 'a@example.org')
  git('config', 'user.name', 'a')
  writeFileSync(at('repository', 'a.txt'), 'first')
  git('add', '.')
  git('commit', '--quiet', '-m', 'first')
  sqlite = new DatabaseSync(at('app.db'))
  sqlite.exec('PRAGMA journal_mode = wal; CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)')
  writeFileSync(at('url'), database.readerUrl)
  writeFileSync(
    at('hikidashi.json'),
    JSON.stringify({
      store: { sqlite: 'store.sqlite' },
      http: { listen: '127.0.0.1:0' },
      mounts: {
        'file:///docs': { provider: 'files', root: 'docs' },
        'git://repository': { provider: 'git', repository: 'repository' },
        'sqlite://app': { provider: 'sqlite', file: 'app.db', rows: true },
        'postgres://app': { provider: 'postgres', url: { file: 'url' }, rows: true },
        'search://all': { provider: 'search', over: '*' },
      },
    }),
  )
  await serve()
})
afterAll(async () => {
  await client.close()
  server.child.kill('SIGKILL')
  await server.ended
  sqlite.close()
  await database.remove()
  rmSync(home, { recursive: true, force: true })
})

async function serve(): Promise<void> {
  server = start(['serve', '--config', 'hikidashi.json'], { cwd: home })
  const [, url = ''] = await server.says(/ at (http:\/\/\S+\/mcp)\n/)
  client = new Client({ name: 'fresh', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
}

async function kill(): Promise<void> {
  server.child.kill('SIGKILL')
  await server.ended
  await client.close().catch(() => {})
}

const template = compileTemplate('search://all{?q,limit,mount,fresh}')

/** Searches, again while the server says that it could not see every change in time: on a busy machine it may. */
async function find(word: string, mount: string): Promise<SearchAnswer> {
  for (;;) {
    const { contents } = await client.readResource({ uri: template.expand({ q: word, mount, fresh: true }) })
    const [content] = contents
    const found = content !== undefined && 'text' in content ? parseSearchAnswer(content.text) : undefined
    if (found?.fresh === true) return found
    expect(found?.fresh).toBe(false)
    expect(found?.notes).toContain(staleNote)
    late++
  }
}

/** A source that is written, and the word that each of its documents has. */
interface Written {
  readonly mount: string
  readonly words: Map<string, string>
  /** The end of the URI of a document. */
  pathOf(name: string): string
  /** Writes a document; without a word, removes it. */
  put(name: string, word: string | undefined): Promise<void> | void
}

function sourcesOf(random: ReturnType<typeof createRandom>): readonly Written[] {
  const place = (name: string) => at('docs', name)
  const number = (name: string) => Number(name.replace(/\D/g, ''))
  const rowOf = (name: string) => `notes/rows/${number(name)}`
  return [
    {
      mount: 'file:///docs',
      words: new Map(),
      pathOf: (name) => name,
      put: (name, word) => {
        if (word === undefined) return rmSync(place(name))
        mkdirSync(dirname(place(name)), { recursive: true })
        // In place, as a whole by a rename, or at the end.
        const way = random.below(3)
        if (way === 0) writeFileSync(place(name), `about ${word}\n`)
        else if (way === 1) {
          writeFileSync(at('new'), `about ${word}\n`)
          renameSync(at('new'), place(name))
        } else appendFileSync(place(name), `and ${word}\n`)
      },
    },
    {
      mount: 'git://repository',
      words: new Map(),
      pathOf: (name) => `HEAD/${name}`,
      put: (name, word) => {
        const file = at('repository', name)
        mkdirSync(dirname(file), { recursive: true })
        if (word === undefined) rmSync(file)
        else writeFileSync(file, word)
        git('add', '--all')
        git('commit', '--quiet', '-m', 'next')
      },
    },
    {
      mount: 'sqlite://app',
      words: new Map(),
      pathOf: rowOf,
      put: (name, word) => {
        if (word === undefined) sqlite.prepare('DELETE FROM notes WHERE id = ?').run(number(name))
        else sqlite.prepare('INSERT OR REPLACE INTO notes VALUES (?, ?)').run(number(name), word)
      },
    },
    {
      mount: 'postgres://app',
      words: new Map(),
      pathOf: rowOf,
      put: async (name, word) => {
        if (word === undefined) await database.run('DELETE FROM notes WHERE id = $1', [number(name)])
        else
          await database.run('INSERT INTO notes VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET text = excluded.text', [
            number(name),
            word,
          ])
      },
    },
  ]
}

test(`a search with the parameter fresh sees each of ${writes} writes that ended before it, also after kills (seed ${seed})`, async () => {
  const random = createRandom(seed)
  const sources = sourcesOf(random)
  for (let i = 0; i < writes; i++) {
    // Half of the writes go to files; a commit takes longer than the others.
    const source = sources[random.below(6) === 0 ? 1 : random.below(2) === 0 ? 0 : 2 + random.below(2)] as Written
    const { mount, words, pathOf, put } = source
    const name = `${['a', 'b/c', 'd/e/f'][random.below(3)]}/${random.below(40)}.txt`.replace(/^a\//, '')
    const before = words.get(name)
    const word = before !== undefined && random.below(5) === 0 ? undefined : `w${i}x${random.below(1000)}`
    const isKilled = i % perKill === 20
    if (isKilled && random.below(2) === 0) await kill()
    await put(name, word)
    if (isKilled) {
      if (server.child.signalCode === null) await kill()
      await serve()
    }
    if (word === undefined) words.delete(name)
    else words.set(name, word)
    const place = `write ${i} to ${mount} (seed ${seed}, ${late} late answers before)`
    const found = await find(word ?? before ?? '', mount).catch(async (error: unknown) => {
      await kill()
      const { err } = await server.ended
      throw new Error(`${place}: ${error}. The server said:\n${err}`, { cause: error })
    })
    const told = `${place}: ${JSON.stringify({ name, word, before, found })}`
    const isFound = found.hits.some(({ document }) => document.endsWith(`/${pathOf(name)}`))
    expect(isFound, told).toBe(word !== undefined)
    expect(found.pending ?? 0, told).toBe(0)
  }
})
