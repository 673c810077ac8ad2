import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, vi } from 'vitest'
import { openStore } from '../../src/store/index.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { contract } from '../support/store-contract.ts'
import { textsContract } from '../support/texts-contract.ts'

// Each takes a second or less; on a machine that is busy with other things, whatever that makes of it.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

let folder: string
let server: Postgres

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hikidashi-store-'))
  server = await startPostgres()
})
afterAll(async () => {
  await server?.remove()
  rmSync(folder, { recursive: true, force: true })
})

const sqlite = { open: () => openStore({ sqlite: { file: join(folder, 'state', 'store.sqlite') } }) }
const postgres = { open: () => openStore({ postgres: { connectionString: server.url, connections: 4 } }) }

contract('SQLite', sqlite)
textsContract('SQLite', sqlite)
contract('PostgreSQL', postgres)
textsContract('PostgreSQL', postgres)
