import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrations } from '../../src/store/sqlite/schema.ts'
import { analyserVersion } from '../../src/text/analyser.ts'
import { run, start } from '../support/cli.ts'

const root = mkdtempSync(join(tmpdir(), 'hikidashi-upgrade-'))
const folder = join(root, 'notes')
const env = {
  XDG_STATE_HOME: join(root, 'state'),
  XDG_CACHE_HOME: join(root, 'cache'),
  LOCALAPPDATA: join(root, 'state'),
}
const cli = (...words: readonly string[]) => run(words, { cwd: folder, env })
const state = () => join(root, 'state/hikidashi')

function inStore<T>(use: (database: DatabaseSyncInstance) => T): T {
  const name = readdirSync(state()).find((one) => one.startsWith('notes-')) ?? expect.fail('no store')
  const database = new DatabaseSync(join(state(), name, 'store.sqlite'))
  try {
    return use(database)
  } finally {
    database.close()
  }
}

beforeAll(async () => {
  mkdirSync(folder)
  writeFileSync(join(folder, 'harbour.md'), '# Harbour\n\nThe mooring fee is paid at the office.\n')
  expect((await cli('search', 'mooring')).out).toContain('harbour.md')
})
afterAll(() => rmSync(root, { recursive: true }))

describe('the stored state', () => {
  test('of an older version is read: its schema is migrated, and its documents are indexed again', async () => {
    inStore((database) => {
      database.exec('update texts set edition = 2')
      database.exec(`pragma user_version = ${migrations.length - 1}`)
    })
    const asked = {
      host: 'codex',
      folder,
      prompt: 'known',
      ms: 1,
      tokens: 0,
      score: 0,
      silence: 'no reason',
      items: [],
    }
    const records = [
      JSON.stringify({ time: '2026-01-01T00:00:00Z', ...asked }),
      '{"of":"another version"}',
      'no record',
    ]
    writeFileSync(join(state(), 'hooks.jsonl'), `${records.join('\n')}\n`)
    const server = start(['serve', '.', '--stdio'], { cwd: folder, env })
    await expect
      .poll(() => inStore((database) => database.prepare('select edition from texts').all()), { timeout: 20_000 })
      .toEqual([{ edition: analyserVersion }])
    server.child.stdin.end()
    await server.ended
    expect(inStore((database) => database.prepare('pragma user_version').get())).toEqual({
      user_version: migrations.length,
    })
    expect((await cli('search', 'mooring')).out).toContain('The mooring fee')
    expect(await cli('why', '--context')).toMatchObject({ code: 0, out: expect.stringContaining('“known”') })
  })

  test('of a newer version is refused with a message and stays unchanged; files are served without it', async () => {
    inStore((database) => database.exec('pragma user_version = 99'))
    const searched = await cli('search', 'mooring')
    expect(searched.code).toBe(1)
    expect(searched.err).toContain('A newer hikidashi wrote the store: its version is 99')
    expect((await cli('doctor')).out).toMatch(/FAILED +store[\s\S]*move .*store\.sqlite away/)
    expect((await cli('read', 'harbour.md')).out).toContain('The mooring fee')
    expect(inStore((database) => database.prepare('pragma user_version').get())).toEqual({ user_version: 99 })
  })
})
