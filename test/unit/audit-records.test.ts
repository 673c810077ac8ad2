import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { findRecords, readRecordedContent } from '../../src/cli/operations/audit-records.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { git } from '../../src/providers/git/index.ts'
import { type AuditRecord, auditedView } from '../../src/server/telemetry/audit.ts'
import { live } from '../support/live.ts'

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-records-'))
afterAll(() => rmSync(folder, { recursive: true }))

const record = (minute: number, more: Partial<AuditRecord>) => ({
  time: `2026-11-29T10:${String(minute).padStart(2, '0')}:00.000Z`,
  ...{ transport: 'http', verb: 'read', outcome: 'ok', ms: 1 },
  ...more,
})

describe('records of the audit log', () => {
  const file = join(folder, 'audit.jsonl')
  const lines = (...records: readonly object[]) => records.map((one) => `${JSON.stringify(one)}\n`).join('')
  const ci = { principal: '["token","ab12cd34"]', label: 'ci' }
  writeFileSync(`${file}.2`, lines(record(1, { ...ci, uri: 'docs://a/1' })))
  writeFileSync(`${file}.1`, `${lines(record(2, { ...ci, uri: 'docs://a/2', outcome: 'denied' }))}{"half":\n`)
  writeFileSync(
    file,
    lines(
      record(3, { principal: '["https://issuer.example","alice"]', uri: 'docs://b/3' }),
      { time: '2026-11-29T10:04:00.000Z', verb: 'lost', items: 7 },
      record(5, { address: '192.0.2.7', verb: 'refused', outcome: 'no-token', status: 401 }),
    ),
  )
  const minutes = async (query: object) => {
    const { records } = await findRecords(file, { limit: 100, ...query })
    return records.map(({ time = '' }) => Number(time.slice(14, 16)))
  }

  test('are found in the rotated files too, in their order, and with a limit the newest are found', async () => {
    expect(await minutes({})).toEqual([1, 2, 3, 4, 5])
    expect(await findRecords(file, { limit: 2 })).toMatchObject({ more: 3, damaged: 1 })
    expect(await minutes({ limit: 2 })).toEqual([4, 5])
  })

  test.each<[object, readonly number[]]>([
    [{ caller: 'ci' }, [1, 2]],
    [{ caller: 'ab12cd34' }, [1, 2]],
    [{ caller: 'alice' }, [3]],
    [{ caller: '192.0.2.7' }, [5]],
    [{ caller: 'token' }, []],
    [{ since: Date.parse('2026-11-29T12:03:00+02:00') }, [3, 4, 5]],
    [{ uri: 'docs://a/' }, [1, 2]],
    [{ outcome: 'denied' }, [2]],
    [{ verb: 'lost' }, [4]],
    [{ caller: 'ci', outcome: 'ok', uri: 'docs://' }, [1]],
  ])('are selected by the query %j', async (query, expected) => expect(await minutes(query)).toEqual(expected))

  test('cannot be read from a log that is missing, and the error names it', async () => {
    await expect(findRecords(join(folder, 'none'), { limit: 1 })).rejects.toThrow(/none cannot be read \(ENOENT\)/)
  })
})

describe('the content that a record of the audit log names', () => {
  const repository = join(folder, 'repository')
  const run = (...words: readonly string[]) =>
    execFileSync('git', ['-C', repository, '-c', 'user.name=a', '-c', 'user.email=a@b', ...words], { encoding: 'utf8' })
  const commit = (text: string) => {
    writeFileSync(join(repository, 'notes.md'), text)
    run('add', '.')
    run('commit', '--quiet', '-m', text)
  }

  test('is read again from git as it was, after the file has changed, also at a branch with slashes', async () => {
    execFileSync('git', ['init', '--quiet', '-b', 'feature/x', repository])
    commit('first')
    const files = live({ 'a.txt': 'one' })
    const catalog = createCatalog({
      mounts: [
        { address: 'git://app', provider: await git({ repository, log: () => {} }) },
        { address: 'mem://m', provider: files },
      ],
    })
    const records: AuditRecord[] = []
    const principal = { id: 'token', label: 'ci', roles: [] }
    const view = auditedView(catalog.view(principal), (one) => records.push(one), {
      ...{ principal, transport: 'http', revision: () => undefined },
    })
    for (const uri of ['git://app/HEAD/notes.md', 'git://app/feature/x/notes.md', 'mem://m/a.txt']) await view.read(uri)
    await view.read('git://app/HEAD/none.md').catch(() => {})
    const [atHead, atBranch, inMemory, none] = records
    for (const one of [atHead, atBranch])
      expect(one).toMatchObject({
        ...{ label: 'ci', commit: run('rev-parse', 'HEAD').trim() },
        version: run('rev-parse', 'HEAD:notes.md').trim(),
      })
    commit('second')
    const now = () => catalog.view(principal).read('git://app/HEAD/notes.md')
    await expect.poll(async () => (await now()).contents).toMatchObject([{ text: 'second' }])
    const mounts = ['git://app', 'mem://m']
    const again = (one: AuditRecord | undefined) => readRecordedContent(one ?? {}, catalog.view(principal), mounts)
    expect(await again(atHead)).toMatchObject({ text: 'first', uri: `git://app/${atHead?.commit}/notes.md` })
    expect(await again(atBranch)).toMatchObject({ text: 'first' })
    expect(await again(none)).toEqual({ reason: 'nothing was read' })
    if (inMemory?.version !== undefined) {
      expect(await again(inMemory)).toMatchObject({ text: 'one', uri: 'mem://m/a.txt' })
      expect(await again({ ...inMemory, version: 'other' })).toMatchObject({ reason: /names no commit/ })
    } else expect(await again(inMemory)).toEqual({ reason: 'the record has no version' })
    await catalog.close()
  })
})
