import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { openStore, type Store } from '../../src/store/index.ts'
import { type Postgres, startPostgres } from './postgres.ts'

/** A store on each engine for the tests of a file. */
export interface EngineStores {
  readonly SQLite: Store
  readonly PostgreSQL: Store
}

/** Opens the stores before the tests, and removes them after the tests. The members are set before the first test. */
export function useEngineStores(): EngineStores {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-search-'))
  const opened: { SQLite?: Store; PostgreSQL?: Store } = {}
  let server: Postgres | undefined
  beforeAll(async () => {
    server = await startPostgres()
    opened.SQLite = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
    opened.PostgreSQL = await openStore({ postgres: { connectionString: server.url, connections: 4 } })
  })
  afterAll(async () => {
    await Promise.all([opened.SQLite?.close(), opened.PostgreSQL?.close()])
    await server?.remove()
    rmSync(folder, { recursive: true, force: true })
  })
  return opened as EngineStores
}
