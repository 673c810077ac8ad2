import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { indexerPrincipal } from '../../src/core/mount-reader.ts'
import type { Change, Content, Context, Entry, ListQuery, Principal, Provider } from '../../src/core/provider.ts'
import type { GdriveOptions } from '../../src/providers/gdrive/index.ts'
import { createReaderLookup } from '../../src/providers/gdrive/model.ts'
import { documents } from '../../src/wrap/documents.ts'
import { addBudget, fillDrive, oddNames, openDrive, served } from '../support/drive-samples.ts'
import { type DriveStandIn, sendDriveError, startDrive } from '../support/drive-stand-in.ts'
import { account, permission, types } from '../support/drive-table.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })

const local: Principal = { id: 'local', roles: [] }
const contextOf = (principal: Principal = local, signal = new AbortController().signal): Context => ({
  principal,
  signal,
})

let drive: DriveStandIn
const opened: Provider[] = []
beforeEach(async () => {
  drive = await startDrive()
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((provider) => provider.close?.()))
  await drive.close()
})

const open = async (options: Partial<GdriveOptions> = {}): Promise<Provider> => {
  const provider = await openDrive(drive, options)
  opened.push(provider)
  return provider
}

async function entriesOf(provider: Provider, query: ListQuery = {}, principal = local): Promise<readonly Entry[]> {
  const entries: Entry[] = []
  for await (const entry of provider.list(query, contextOf(principal))) entries.push(entry)
  return entries
}

const pathsOf = async (provider: Provider, principal = local): Promise<readonly string[]> =>
  (await entriesOf(provider, {}, principal)).map(({ path }) => path)

async function read(provider: Provider, path: string, params: Readonly<Record<string, string>> = {}) {
  const [content] = await provider.read({ path, params: new Map(Object.entries(params)) }, contextOf())
  if (content === undefined) throw new Error('it answered nothing')
  return content
}

const textOf = (content: Content) => ('text' in content ? content.text : undefined)
const told = (content: Content) => content.meta?.['dev.hikidashi/drive']

/** Waits until something is so: changes are seen when they are looked for. */
const eventually = <T>(work: () => Promise<T> | T) => vi.waitFor(work, { timeout: 60_000, interval: 50 })

describe('a listing of a Drive mount', () => {
  test('has files by their ids, with their names as titles', async () => {
    fillDrive(drive)
    const provider = await open()
    const entries = await entriesOf(provider)
    expect(entries.map(({ path }) => path).sort()).toEqual(Object.keys(served).sort())
    const titles = new Map(entries.map(({ path, title }) => [path, title]))
    expect(titles.get('odd-1')).toBe(oddNames['odd-1'])
    expect(titles.get('odd-3')).toBe('gpj. exe line')
    expect(titles.get('link-1')).toBe('To the first')
    expect(entries.find(({ path }) => path === 'docs/deep/notes-1')).toEqual({
      path: 'docs/deep/notes-1',
      title: 'notes.txt',
      mimeType: 'text/plain',
      size: 6,
      modified: Date.parse('2026-02-03T04:05:06Z'),
      version: expect.stringMatching(/^[0-9a-f]{32}$/),
      meta: { 'dev.hikidashi/drive': { link: 'https://docs.google.com/file/d/notes-1/view', revision: 'r1' } },
    })
  })

  test('shows folders by name in a directory, and no empty folders', async () => {
    fillDrive(drive)
    const provider = await open()
    const children = await entriesOf(provider, { shallow: true })
    const directories = children.filter(({ path }) => path.endsWith('/'))
    expect(directories).toEqual([
      { path: 'docs-2/', title: 'Documents', mimeType: 'inode/directory' },
      { path: 'docs/', title: 'Documents', mimeType: 'inode/directory' },
    ])
    const rest = await entriesOf(provider, { shallow: true, prefix: 'docs/', after: 'docs/deep/' })
    expect(rest.map(({ path }) => path)).toEqual(['docs/plan'])
  })

  test('of one folder has only its files; shared drives can be included, all or some', async () => {
    fillDrive(drive)
    drive.table.addDrive('0Adrive1', 'Team')
    drive.table.addDrive('0Adrive2', 'Other team')
    drive.table.add({ id: 'shared-1', parent: '0Adrive1', content: 'in a drive' })
    drive.table.add({ id: 'shared-2', parent: '0Adrive2', content: 'in another' })
    expect(await pathsOf(await open({ what: { kind: 'folder', id: 'docs' } }))).toEqual(['deep/notes-1', 'plan'])
    const all = await open({ what: { kind: 'drives' } })
    expect(await pathsOf(all)).toEqual(['0Adrive1/shared-1', '0Adrive2/shared-2'])
    expect(textOf(await read(all, '0Adrive1/shared-1'))).toBe('in a drive')
    expect((await all.stat?.('0Adrive1/', contextOf()))?.title).toBe('Team')
    expect(await pathsOf(await open({ what: { kind: 'drives', ids: ['0Adrive2'] } }))).toEqual(['0Adrive2/shared-2'])
    drive.table.addDrive('0Adrive3', 'New')
    drive.table.add({ id: 'shared-3', parent: '0Adrive3', content: 'new' })
    await eventually(async () => expect(await pathsOf(all)).toContain('0Adrive3/shared-3'))
    await expect(pathsOf(await open({ what: { kind: 'folder', id: 'gone' } }))).rejects.toMatchObject({
      kind: 'unavailable',
    })
    await expect(pathsOf(await open({ what: { kind: 'folder', id: 'plan' } }))).rejects.toThrow(
      /does not belong to a folder/,
    )
  })

  test('of what is shared with the user has single files and folders with their files, and none of the own files', async () => {
    drive.table.add({ id: 'theirs', parent: null, shared: true })
    drive.table.add({ id: 'inner', parent: 'theirs', content: 'inner', shared: true })
    drive.table.add({ id: 'single', parent: 'unseen', content: 'single', shared: true })
    drive.table.add({ id: 'own', content: 'own' })
    expect(await pathsOf(await open({ what: { kind: 'shared' } }))).toEqual(['single', 'theirs/inner'])
  })

  test('follows shortcuts without loops, each folder at one place, and only some or none with the option shortcuts', async () => {
    fillDrive(drive)
    drive.table.add({ id: 'outside', parent: null })
    drive.table.add({ id: 'far', parent: 'outside', content: 'far' })
    drive.table.add({ id: 'back', parent: 'outside', target: 'docs' })
    drive.table.add({ id: 'self', parent: 'outside', target: 'outside' })
    drive.table.add({ id: 'to-1', target: 'outside' })
    drive.table.add({ id: 'to-2', parent: 'docs', target: 'outside' })
    drive.table.add({ id: 'to-3', target: 'far' })
    const all = Object.keys(served)
    expect([...(await pathsOf(await open()))].sort()).toEqual([...all, 'docs/to-2/far', 'to-3'].sort())
    expect([...(await pathsOf(await open({ shortcuts: 'inside' })))].sort()).toEqual([...all].sort())
    const none = await pathsOf(await open({ shortcuts: 'none' }))
    expect([...none].sort()).toEqual(all.filter((path) => path !== 'link-1').sort())
    const link = await read(await open(), 'docs/to-2/far')
    expect(textOf(link)).toBe('far')
  })

  test('has the files of all pages, and is refused beyond maxFiles', async () => {
    for (let i = 0; i < 120; i++) drive.table.add({ id: `f${i}`, content: 'x' })
    for (let i = 0; i < 90; i++) drive.table.add({ id: `d${i}` })
    drive.table.add({ id: 'in-the-last', parent: 'd89', content: 'x' })
    drive.pageLimit = 50
    expect(await pathsOf(await open())).toHaveLength(121)
    await expect(pathsOf(await open({ maxFiles: 100 }))).rejects.toThrow(/more than 100 files/)
  })
})

describe('a read of a Drive mount', () => {
  test('has the owners, the last editor, the link and the revision of a document', async () => {
    fillDrive(drive)
    const content = await read(await open(), 'docs/plan')
    expect(content).toMatchObject({ mimeType: 'text/markdown', text: served['docs/plan'] })
    expect(told(content)).toMatchObject({
      id: 'plan',
      name: 'Plan',
      type: types.document,
      link: 'https://docs.google.com/file/d/plan/view',
      revision: '1',
      owners: [{ name: 'Reader', email: account }],
      lastModifiedBy: { name: 'Hanako', email: 'hanako@example.com' },
    })
  })

  test('gives a document in other formats, whose names are completed', async () => {
    fillDrive(drive)
    const provider = await open()
    expect(await read(provider, 'docs/plan', { form: 'pdf' })).toMatchObject({ mimeType: 'application/pdf' })
    expect(textOf(await read(provider, 'sketch-1', { form: 'svg' }))).toMatch(/^<svg/)
    for (const [path, params] of [
      ['docs/plan', { form: 'png' }],
      ['docs/plan', { sheet: 'x' }],
      ['same-a', { form: 'pdf' }],
      ['docs/plan', { form: '__proto__' }],
    ] as const)
      await expect(read(provider, path, params)).rejects.toMatchObject({ kind: 'invalid' })
    const [template] = (await provider.templates?.(contextOf())) ?? []
    const argument = { name: 'form', value: 'p' }
    const request = { template: template?.template ?? '', argument, arguments: new Map([['path', 'sketch-1']]) }
    expect(await provider.complete?.(request, contextOf())).toEqual({
      values: ['png', 'pdf'],
      total: 2,
      hasMore: false,
    })
  })

  test('gives a spreadsheet as CSV, sheet by sheet or all in one', async () => {
    addBudget(drive)
    const provider = await open()
    const costs = 'Item,Price\n"Tea, green",3.5\n"A ""quoted"" one",7\n'
    const whole = await read(provider, 'budget')
    expect(whole).toMatchObject({ mimeType: 'text/markdown' })
    expect(textOf(whole)).toBe(`# Costs\n\n\`\`\`csv\n${costs}\`\`\`\n\n# 売上\n\n\`\`\`csv\n月,額\n一月,100\n\`\`\`\n`)
    expect(told(whole)).toMatchObject({ sheets: ['Costs', '売上'] })
    expect(await read(provider, 'budget', { sheet: 'Costs' })).toMatchObject({ mimeType: 'text/csv', text: costs })
    expect(textOf(await read(provider, 'budget', { sheet: '売上' }))).toBe('月,額\n一月,100\n')
    await expect(read(provider, 'budget', { sheet: 'Nope' })).rejects.toMatchObject({ kind: 'not-found' })
    const [template] = (await provider.templates?.(contextOf())) ?? []
    const argument = { name: 'sheet', value: '' }
    const request = { template: template?.template ?? '', argument, arguments: new Map([['path', 'budget']]) }
    expect(await provider.complete?.(request, contextOf())).toMatchObject({ values: ['Costs', '売上'] })
    const view = createCatalog({ mounts: [{ address: 'gdrive://me', provider: documents(provider) }] }).view(local)
    const part = await view.read('gdrive://me/budget?sheet=Costs&lines=2-2')
    expect(part.contents.map(textOf)).toEqual(['"Tea, green",3.5\n'])
  })

  test('gives a part of a stored file, and refuses the whole file above the limit', async () => {
    drive.table.add({ id: 'long', name: 'long.txt', content: 'abc'.repeat(10_000) })
    const provider = await open({ maxBytes: 10_000 })
    const range = { start: 29_997, end: 30_000 }
    const [part] = await provider.read({ path: 'long', params: new Map(), range }, contextOf())
    expect(part).toMatchObject({ text: 'abc', range, size: 30_000 })
    const ranges = drive.calls.flatMap(({ headers }) => headers.range ?? [])
    expect(ranges).toContain('bytes=29997-29999')
    await expect(read(provider, 'long')).rejects.toMatchObject({ kind: 'too-large', detail: { limit: 10_000 } })
  })

  test('gives an Office file as bytes, and as text', async () => {
    addBudget(drive)
    const type = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'
    const bytes = drive.table.files.get('budget')?.exports?.[type]
    drive.table.add({ id: 'book', name: 'Book', mimeType: type, content: Buffer.from(bytes ?? '') })
    const provider = documents(await open())
    expect(await read(provider, 'book')).toMatchObject({ mimeType: type })
    expect(textOf(await read(provider, 'book', { as: 'text' }))).toContain('Tea, green\t3.5')
    await provider.close?.()
  })

  test('beyond the limit of exports by Google gives the error too-large with this limit', async () => {
    const exports = { 'text/markdown': 'x'.repeat(10 * 1024 * 1024 + 1) }
    drive.table.add({ id: 'huge', mimeType: types.document, exports })
    await expect(read(await open(), 'huge')).rejects.toMatchObject({
      kind: 'too-large',
      message: expect.stringContaining('exports at most'),
      detail: { limit: 10 * 1024 * 1024 },
    })
  })
})

describe('permissions in a Drive mount', () => {
  const ann = { id: 'p', type: 'user', emailAddress: 'ann@example.org' }
  const [ended, limited] = [
    { ...ann, expirationTime: '2020-01-01T00:00:00Z' },
    { ...ann, view: 'metadata' },
  ]
  const files = { a: [ended], b: [ann], c: [limited] }
  const lookUp = async (id: string) => files[id as keyof typeof files]
  const byId = (id: string) => ({ id, permissionIds: ['p'] })
  const namesOf = async (...asked: Parameters<ReturnType<typeof createReaderLookup>>[0]) =>
    (await readersOf(asked, lookUp)).map((readers) => [...readers])
  let readersOf = createReaderLookup()
  beforeEach(() => {
    readersOf = createReaderLookup()
  })

  test('that ended, or exclude the content, grant no access, and do not affect other files', async () => {
    expect(await namesOf(byId('a'), byId('c'), byId('b'))).toEqual([[], [], ['ann@example.org']])
    for (const permissions of [[ended], [limited]])
      expect(await namesOf({ id: 'd', permissions }, byId('b'))).toEqual([[], ['ann@example.org']])
  })
})

describe('changes of a Drive mount', () => {
  /** What a watch tells, as it does. */
  const follow = async (provider: Provider) => {
    const ended = new AbortController()
    const seen: Change[] = []
    const changes = await provider.watch?.(ended.signal)
    if (changes === undefined) throw new Error('it does not watch')
    void (async () => {
      for await (const change of changes) seen.push(change)
    })()
    return { seen, stop: () => ended.abort() }
  }

  test('are reported for files that are edited, created, moved, deleted, restored and purged', async () => {
    fillDrive(drive)
    const provider = await open()
    const { seen, stop } = await follow(provider)
    const { table } = drive
    const expectSeen = (...paths: readonly string[]) =>
      eventually(() => expect(paths.filter((path) => !seen.some((change) => change.path === path))).toEqual([]))
    table.write('same-b', 'changed')
    await expectSeen('same-b')
    expect(textOf(await read(provider, 'same-b'))).toBe('changed')
    table.add({ id: 'fresh', parent: 'deep', content: 'fresh' })
    await expectSeen('docs/deep/fresh')
    table.move('deep', 'docs-2')
    await expectSeen('docs-2/deep/fresh', 'docs/deep/notes-1', 'docs-2/deep/notes-1')
    table.trash('docs-2')
    await expectSeen('docs-2/pdf')
    await eventually(async () =>
      expect((await pathsOf(provider)).some((path) => path.startsWith('docs-2/'))).toBe(false),
    )
    for (const id of ['docs-2', 'pdf', 'deep', 'fresh', 'notes-1']) table.change(id, { trashed: false })
    await eventually(async () => expect(await pathsOf(provider)).toContain('docs-2/deep/notes-1'))
    // A folder that comes in as a whole: the feed tells of it alone.
    table.add({ id: 'far', parent: null })
    table.add({ id: 'farther', parent: 'far', content: 'x' })
    await provider.stat?.('empty', contextOf())
    table.move('far', 'docs')
    await eventually(async () => expect(await pathsOf(provider)).toContain('docs/far/farther'))
    table.remove('empty')
    await expectSeen('empty')
    stop()
  })

  test('are reported after catching up, however long the interval is', async () => {
    fillDrive(drive)
    const provider = await open({ intervalMs: 3_600_000 })
    const { seen, stop } = await follow(provider)
    drive.table.write('same-b', 'changed')
    expect(await provider.catchUp?.(new AbortController().signal)).toBe(true)
    await eventually(() => expect(seen).toContainEqual({ path: 'same-b', listed: true }))
    stop()
  })

  test('that happen during an outage are reported after it, and the mount is marked as unavailable meanwhile', async () => {
    fillDrive(drive)
    const provider = await open({ timeoutMs: 1000 })
    const { seen, stop } = await follow(provider)
    drive.intercept = (_, response) => {
      sendDriveError(response, 503, 'backendError')
      return true
    }
    await eventually(() => expect(provider.degraded?.()).toBe('unavailable'))
    drive.table.write('same-a', 'meanwhile')
    drive.intercept = undefined
    await eventually(() => expect(seen).toContainEqual({ path: 'same-a', listed: true }))
    expect(provider.degraded?.()).toBeUndefined()
    stop()
  })
})

test('the search indexer sees all files of a Drive mount with permissions, and no caller can pass for the indexer', async () => {
  drive.table.add({ id: 'mine', content: 'x', permissions: [permission('a@example.com')] })
  const provider = await open({ permissions: true })
  expect(await pathsOf(provider, indexerPrincipal)).toEqual(['mine'])
  expect(await pathsOf(provider, { ...indexerPrincipal })).toEqual([])
  expect(await pathsOf(provider, { id: 'x', roles: ['A@Example.com'] })).toEqual(['mine'])
})
