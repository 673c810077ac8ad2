import { chmodSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import { createScrubber } from '../../src/core/scrub.ts'
import { type AuditRecord, auditedView } from '../../src/server/telemetry/audit.ts'
import { openAuditFile } from '../../src/server/telemetry/audit-file.ts'
import { live, until } from '../support/live.ts'
import { memory } from '../support/memory.ts'

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-audit-'))
afterAll(() => rmSync(folder, { recursive: true }))
const log = () => {}
const principal = { id: 'alice', roles: ['r'] }
let next = 0
const freshFile = () => join(folder, `audit-${next++}.jsonl`)
const record = (uri: string): AuditRecord => ({
  ...{ time: '2026-11-21T00:00:00.000Z', principal: 'alice', transport: 'http', verb: 'read', uri },
  ...{ outcome: 'ok', bytes: 1, ms: 1 },
})
/** Empty while the file is just being put aside. */
const textOf = (file: string) => {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return ''
  }
}
const linesOf = (file: string) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { uri?: string; verb: string; items?: number })

describe('the audit log of a view', () => {
  test('records the caller, the request, the outcome and the size, and nothing of the content', async () => {
    const records: AuditRecord[] = []
    const provider = live({ 'a.txt': { text: 'the content' }, 'secret.txt': { text: 'hidden' }, 'dir/b': 'b' })
    const catalog = createCatalog({
      mounts: [
        {
          address: 'mem://m',
          provider: {
            ...provider,
            read: (request, context) =>
              request.path === 'down'
                ? Promise.reject(new ResourceError('unavailable', 'connect ECONNREFUSED 10.0.0.1'))
                : provider.read(request, context),
          },
          access: compileAccess([{ allow: ['r'] }, { deny: ['r'], match: 'secret.txt' }]),
        },
      ],
    })
    const view = auditedView(catalog.view(principal), (one) => records.push(one), {
      ...{ principal, transport: 'http', revision: () => '2026-07-28' },
    })
    await view.read('mem://m/a.txt')
    for (const uri of ['mem://m/secret.txt', 'mem://m/none', 'mem://m/down', 'mem://m/../x', 'mem://other/x'])
      await view.read(uri).catch(() => {})
    await view.list()
    await view.directory({ uri: 'mem://m/dir' })
    await view.complete({ uriTemplate: 'mem://m/{+path}', argument: { name: 'path', value: 'a' } })
    const gone = new AbortController()
    gone.abort()
    await view.read('mem://m/a.txt', { signal: gone.signal }).catch(() => {})
    const subscription = view.subscribe?.(() => {})
    await subscription?.add(['mem://m/a.txt', 'mem://m/secret.txt'])
    await catalog.close()
    expect(records.map(({ verb, uri, outcome, bytes, items }) => [verb, uri, outcome, bytes ?? items])).toEqual([
      ['read', 'mem://m/a.txt', 'ok', 11],
      ['read', 'mem://m/secret.txt', 'denied', undefined],
      ['read', 'mem://m/none', 'not-found', undefined],
      ['read', 'mem://m/down', 'unavailable', undefined],
      ['read', 'mem://m/../x', 'invalid', undefined],
      ['read', 'mem://other/x', 'not-found', undefined],
      ['list', undefined, 'ok', 2],
      ['directory', 'mem://m/dir', 'ok', 1],
      ['complete', 'mem://m/{+path}', 'ok', 1],
      ['read', 'mem://m/a.txt', 'cancelled', undefined],
      ['subscribe', 'mem://m/a.txt', 'ok', undefined],
      ['subscribe', 'mem://m/secret.txt', 'unheard', undefined],
    ])
    for (const one of records) {
      expect(one).toMatchObject({ principal: 'alice', transport: 'http', revision: '2026-07-28' })
      expect(one.ms).toBeGreaterThanOrEqual(0)
      expect(JSON.stringify(one)).not.toMatch(/content|hidden|10\.0\.0\.1/)
    }
  })

  test('does not make the view offer subscriptions that its catalog lacks', () => {
    const view = createCatalog({ mounts: [{ address: 'mem://m', provider: memory({}) }] }).view(principal)
    const facts = { principal, transport: 'stdio', revision: () => undefined } as const
    expect(auditedView(view, () => {}, facts).subscribe).toBeUndefined()
  })
})

describe('the file of the audit log', () => {
  test('is readable by its owner only, has one record a line, and is continued after a restart', async () => {
    const file = freshFile()
    for (const uri of ['a://1', 'a://2']) {
      const audit = await openAuditFile({ file, log })
      audit.write(record(uri))
      await audit.close()
    }
    expect(linesOf(file).map(({ uri }) => uri)).toEqual(['a://1', 'a://2'])
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  test('is closed to others if it was open to them, and is not opened through a link', async () => {
    const file = freshFile()
    writeFileSync(file, '')
    chmodSync(file, 0o644)
    await (await openAuditFile({ file, log })).close()
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const link = freshFile()
    symlinkSync(file, link)
    await expect(openAuditFile({ file: link, log })).rejects.toMatchObject({
      message: expect.stringContaining('audit log'),
      detail: { reason: 'configuration' },
    })
    await expect(openAuditFile({ file: join(folder, 'none/x'), log })).rejects.toThrow('cannot be written (ENOENT)')
    await expect(openAuditFile({ file: folder, log })).rejects.toMatchObject({ kind: 'invalid' })
  })

  test('is rotated when it is long, and a limited number of old files is kept', async () => {
    const file = freshFile()
    const audit = await openAuditFile({ file, maxBytes: 400, keep: 2, log })
    for (let i = 0; i < 20; i++) {
      audit.write(record(`a://${i}`))
      await until(() => textOf(file).includes(`a://${i}"`))
    }
    await audit.close()
    const kept = [`${file}.2`, `${file}.1`, file].flatMap(linesOf).map(({ uri }) => uri)
    expect(kept.at(-1)).toBe('a://19')
    expect(kept).toEqual([...Array(20).keys()].slice(-kept.length).map((i) => `a://${i}`))
    for (const name of [file, `${file}.1`, `${file}.2`]) {
      expect(statSync(name).size).toBeLessThanOrEqual(400)
      expect(statSync(name).mode & 0o777).toBe(0o600)
    }
    expect(() => statSync(`${file}.3`)).toThrow()
  })

  test('keeps whole lines when many are written at once', async () => {
    const file = freshFile()
    const audit = await openAuditFile({ file, log })
    for (let i = 0; i < 5000; i++) audit.write(record(`a://${i}`))
    await audit.close()
    expect(linesOf(file).map(({ uri }) => uri)).toEqual([...Array(5000).keys()].map((i) => `a://${i}`))
    expect(audit.lost).toBe(0)
  })

  test('is created again after it was moved away', async () => {
    const file = freshFile()
    const audit = await openAuditFile({ file, log })
    audit.write(record('a://before'))
    await until(() => statSync(file).size > 0)
    renameSync(file, `${file}.moved`)
    let i = 0
    await until(() => {
      audit.write(record(`a://${i++}`))
      return statSync(file, { throwIfNoEntry: false }) !== undefined
    })
    await audit.close()
    const uris = [...linesOf(`${file}.moved`), ...linesOf(file)].map(({ uri }) => uri)
    expect(uris).toEqual(['a://before', ...[...Array(i).keys()].map((number) => `a://${number}`)])
  })

  test('that cannot be written loses records, counts them, and records the number later', async () => {
    const file = freshFile()
    const said: string[] = []
    const audit = await openAuditFile({ file, log: (level, message) => said.push(`${level} ${message}`) })
    audit.write(record('a://first'))
    await until(() => statSync(file).size > 0)
    // Where the file was, there is something now that is no file.
    rmSync(file)
    symlinkSync('/dev/full', file)
    await until(() => {
      audit.write(record('a://lost'))
      return audit.lost > 0
    })
    rmSync(file)
    await until(() => {
      audit.write(record('a://again'))
      return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0
    })
    await audit.close()
    const lines = linesOf(file)
    expect(lines[0]).toMatchObject({ verb: 'lost' })
    expect(lines[0]?.items).toBeGreaterThan(0)
    expect(lines.at(-1)).toMatchObject({ uri: 'a://again' })
    expect(said).toContain('error the audit log cannot be written: records are lost')
    expect(said).toContain('info the audit log is written again')
  })

  test('has no known secret in a URI', async () => {
    const file = freshFile()
    const audit = await openAuditFile({ file, log, scrubber: createScrubber(['hunter2-hunter2']) })
    audit.write(record('a://x/hunter2-hunter2'))
    audit.write(record('a://x/\n\u2028"}{'))
    await audit.close()
    expect(linesOf(file).map(({ uri }) => uri)).toEqual(['a://x/[redacted]', 'a://x/\n\u2028"}{'])
  })
})
