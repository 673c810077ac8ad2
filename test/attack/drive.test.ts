import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Change, Provider } from '../../src/core/provider.ts'
import { quoteValue } from '../../src/providers/gdrive/scan.ts'
import { zip } from '../fixtures/documents/zip.ts'
import { addBudget, fillDrive, oddNames, openDrive } from '../support/drive-samples.ts'
import { type DriveStandIn, sendDriveError, startDrive } from '../support/drive-stand-in.ts'
import { account, permission, rootId, types } from '../support/drive-table.ts'
import { useArena, wireNames } from './harness/arena.ts'
import { expectOutcome } from './harness/oracles.ts'
import { startConfigured } from './harness/target.ts'
import type { Answer, Wire } from './harness/wire.ts'
import { eachWire } from './harness/wires.ts'
import type { World } from './harness/world.ts'

// The rows DR of the attack corpus that are about Drive: the built command line on a stand-in for Google. That no token of it leaves in
// any spelling, nor what is shared with others alone, the arena looks after (oracle O1).

let drive: DriveStandIn
const alice = 'alice@example.com'
const office = 'application/vnd.openxmlformats-officedocument.'

beforeAll(async () => {
  drive = await startDrive()
  fillDrive(drive)
  addBudget(drive)
  const { table } = drive
  table.add({ id: 'for-alice', content: 'for alice', permissions: [permission(account, 'owner'), permission(alice)] })
  table.add({
    id: 'unknown',
    content: 'nobody knows',
    canShare: false,
    permissions: [{ ...permission(alice), id: 'p-x' }],
  })
})
afterAll(() => drive.close())
// What a test does to it, the next one does not see.
beforeEach(() => {
  drive.intercept = undefined
})

let planted = false
function plant({ canaries, root }: World): void {
  if (planted) return
  planted = true
  drive.oauth.settings.mark = canaries.plant('token')
  // To whom only the account itself, or somebody else, is told.
  const others = [permission(account, 'owner'), permission('bob@example.com')]
  const secret = canaries.plant('shared')
  drive.table.add({ id: 'for-bob', name: secret, content: secret, permissions: others, parent: 'people' })
  drive.table.add({ id: 'people', name: 'People' })
  drive.table.add({ id: 'both', parent: 'people', content: 'both', permissions: [...others, permission(alice)] })
  writeFileSync(join(dirname(root), 'key.json'), drive.oauth.key)
}

const arena = useArena(
  {},
  (world, { transport }) => {
    plant(world)
    const common = { provider: 'gdrive', key: { file: './key.json' }, endpoint: drive.url, interval: '200ms' }
    return startConfigured(world, transport, {
      roles: [alice],
      mounts: {
        [world.address]: { provider: 'files', root: world.root },
        'gdrive://docs': { ...common, folder: 'docs' },
        'gdrive://people': { ...common, permissions: true },
      },
    })
  },
  // The connections to the stand-in, and a worker for documents.
  { slack: { descriptors: 64, threads: 24, resident: 600 }, upstreams: () => [drive.port] },
)

const contentsOf = ({ message }: Answer) =>
  (message?.result?.contents ?? []) as readonly { readonly uri: string; readonly text?: string }[]
const eventually = <T>(work: () => Promise<T> | T) => vi.waitFor(work, { timeout: 60_000, interval: 50 })

/** Everything that is listed below an address. */
async function listed(wire: Wire, address: string): Promise<readonly { uri: string; title?: string }[]> {
  const found: { uri: string; title?: string }[] = []
  for (let cursor: unknown; ; ) {
    const { message } = await arena.ask(wire, 'resources/list', cursor === undefined ? {} : { cursor })
    found.push(...((message?.result?.resources ?? []) as typeof found))
    cursor = message?.result?.nextCursor
    if (cursor === undefined) return found.filter(({ uri }) => uri.startsWith(`${address}/`))
  }
}

describe('a client of a Google Drive mount', () => {
  eachWire(wireNames)(
    'gets no file by a name that contains a query or a path of the API, over %s (DR01)',
    async (name) => {
      const wire = arena.wire(name)
      const [before] = [drive.calls.length]
      const names = [
        ...["plan' or name contains 'x", "'", "\\'", "' or trashed = true or '", "x' in parents or 'docs", 'plan"'],
        ...['plan?alt=media', 'plan&alt=media', 'plan#x', 'plan;x', 'plan\\..', 'root', 'docs', '0AROOTofMyDrive'],
        ...['x'.repeat(129), 'x'.repeat(3000), '__proto__', 'あ', ' plan', 'plan ', '%27', 'PLAN', '*'],
      ]
      for (const one of names) {
        const uri = `gdrive://docs/${encodeURIComponent(one)}`
        expectOutcome(wire, await arena.read(wire, uri), 'NF', uri)
      }
      for (const path of [
        '..%2fsame-a',
        'plan%2fexport',
        '%2e%2e/same-a',
        'plan%00',
        '../same-a',
        '.',
        'deep//notes-1',
      ]) {
        const uri = `gdrive://docs/${path}`
        expectOutcome(wire, await arena.read(wire, uri), 'BAD', uri)
      }
      for (const path of ['plan/export', 'plan/permissions', 'deep/plan', 'notes-1', 'plan/plan', 'same-a']) {
        const uri = `gdrive://docs/${path}`
        expectOutcome(wire, await arena.read(wire, uri), 'NF', uri)
      }
      const asked = drive.calls.slice(before)
      for (const { path, query } of asked) {
        expect(path).toMatch(
          /^\/(?:token|drive\/v3\/(?:files(?:\/[\w-]+(?:\/export)?)?|changes(?:\/startPageToken)?))$/,
        )
        const q = query.get('q')
        if (q !== null) expect(q).toMatch(/^\('[\w-]+' in parents(?: or '[\w-]+' in parents)*\) and trashed = false$/)
      }
    },
  )

  test('cannot end a value in a query: quotes and backslashes are escaped (DR01)', () => {
    expect(quoteValue("it's \\ x' or '1")).toBe("'it\\'s \\\\ x\\' or \\'1'")
  })

  eachWire(wireNames)(
    'lists, reads and finds in directories only the files that Drive shares with its user, over %s (DR02)',
    async (name) => {
      const wire = arena.wire(name)
      const uris = (await listed(wire, 'gdrive://people')).map(({ uri }) => uri)
      expect([...uris].sort()).toEqual(['gdrive://people/for-alice', 'gdrive://people/people/both'])
      const allowed = 'gdrive://people/people/both'
      expectOutcome(wire, await arena.read(wire, allowed), 'ctl', allowed, 'both')
      for (const path of ['people/for-bob', 'unknown', 'same-a', 'docs/plan', 'people/gone'])
        for (const query of ['', '?lines=1-2']) {
          const uri = `gdrive://people/${path}${query}`
          expectOutcome(wire, await arena.read(wire, uri), 'NF', uri)
        }
      const children = contentsOf(await arena.read(wire, 'gdrive://people/people'))
      expect(children.map(({ uri }) => uri)).toEqual(['gdrive://people/people/both'])
      const hidden = 'gdrive://people/docs'
      expectOutcome(wire, await arena.read(wire, hidden), 'NF', hidden)
    },
  )

  test('no longer gets a file from the next read on after its sharing has ended, unless anyone may find it (DR02)', async () => {
    const wire = arena.wire('http 2026-07-28')
    const uri = 'gdrive://people/lent'
    const lend = [permission(account, 'owner'), permission(alice)]
    drive.table.add({ id: 'lent', content: 'lent', permissions: lend })
    await eventually(async () => expectOutcome(wire, await arena.read(wire, uri), 'ctl', uri, 'lent'))
    drive.table.change('lent', { permissions: [permission(account, 'owner')] })
    expectOutcome(wire, await arena.read(wire, uri), 'NF', uri)
    await eventually(async () =>
      expect((await listed(wire, 'gdrive://people')).map((one) => one.uri)).not.toContain(uri),
    )
    drive.table.change('lent', { permissions: [{ ...permission(alice), expirationTime: '2020-01-01T00:00:00Z' }] })
    expectOutcome(wire, await arena.read(wire, uri), 'NF', uri)
    // A link that nobody finds shares nothing; what anybody finds is for anybody.
    const anyone = { id: 'anyone', type: 'anyone', role: 'reader' } as const
    drive.table.change('lent', { permissions: [{ ...anyone, allowFileDiscovery: false }] })
    expectOutcome(wire, await arena.read(wire, uri), 'NF', uri)
    drive.table.change('lent', { permissions: [{ ...anyone, allowFileDiscovery: true }] })
    await eventually(async () => expectOutcome(wire, await arena.read(wire, uri), 'ctl', uri, 'lent'))
  })

  test.each([
    ['moved out of the folder', (id: string) => drive.table.move(id, 'docs-2')],
    ['moved to nowhere', (id: string) => drive.table.move(id, undefined)],
    ['thrown away', (id: string) => drive.table.trash(id)],
    ['given to somebody who does not share it', (id: string) => drive.table.change(id, { visible: false })],
    ['barred from download', (id: string) => drive.table.change(id, { canDownload: false })],
    ['removed', (id: string) => drive.table.remove(id)],
  ] as const)('does not find a file that was %s, from the next read on (DR04)', async (what, change) => {
    const wire = arena.wire('stdio 2025-11-25')
    const id = `going-${what.length}`
    const uri = `gdrive://docs/${id}`
    drive.table.add({ id, parent: 'docs', content: 'here' })
    await eventually(async () => expectOutcome(wire, await arena.read(wire, uri), 'ctl', uri, 'here'))
    change(id)
    expectOutcome(wire, await arena.read(wire, uri), 'NF', uri)
    await eventually(async () => expect((await listed(wire, 'gdrive://docs')).map((one) => one.uri)).not.toContain(uri))
  })

  eachWire(wireNames)('gets hostile names only as titles, over %s (DR06)', async (name) => {
    const wire = arena.wire(name)
    drive.table.change('odd-2', { parents: ['docs'] })
    drive.table.change('odd-3', { parents: ['docs'] })
    const twins = ['twin-1', 'twin-2'].filter((id) => !drive.table.files.has(id))
    for (const id of twins) drive.table.add({ id, name: oddNames['odd-1'], parent: 'docs', content: id })
    await eventually(async () => {
      const entries = await listed(wire, 'gdrive://docs')
      const titles = new Map(entries.map(({ uri, title }) => [uri, title]))
      expect(titles.get('gdrive://docs/odd-2')).toBe(oddNames['odd-2'])
      expect(titles.get('gdrive://docs/odd-3')).toBe('gpj. exe line')
      expect(titles.get('gdrive://docs/twin-1')).toBe(oddNames['odd-1'])
      expect(titles.get('gdrive://docs/twin-2')).toBe(oddNames['odd-1'])
      for (const { uri } of entries) expect(uri).toMatch(/^gdrive:\/\/docs\/[\w/-]+$/)
    })
    const uri = 'gdrive://docs/twin-2'
    expectOutcome(wire, await arena.read(wire, uri), 'ctl', uri, 'twin-2')
  })

  test('gets an error with the reason for a document over the limit of exports, a zip bomb, a document type definition and malware (DR07)', async () => {
    const { table } = drive
    table.add({
      id: 'huge',
      parent: 'docs',
      mimeType: types.document,
      exports: { 'text/markdown': 'x'.repeat(10_485_761) },
    })
    const zeros = { name: '_rels/.rels', data: Buffer.alloc(300_000_000, 0x20) }
    const laughs = `<!DOCTYPE x [<!ENTITY a "${'ha'.repeat(1000)}"><!ENTITY b SYSTEM "file:///etc/passwd">]><x>&a;&b;</x>`
    const sheets = `${office}spreadsheetml.sheet`
    table.add({ id: 'bomb', parent: 'docs', mimeType: types.spreadsheet, exports: { [sheets]: zip([zeros]) } })
    const word = zip([{ name: '_rels/.rels', data: laughs }])
    table.add({ id: 'xxe', parent: 'docs', mimeType: `${office}wordprocessingml.document`, content: word })
    const abusive = { id: 'macro', parent: 'docs', content: 'virus', abusive: true }
    table.add(abusive)
    const wire = arena.wire('http 2026-07-28')
    const failure = async (path: string) => {
      const { message } = await arena.read(wire, `gdrive://docs/${path}`)
      expect(message?.result).toBeUndefined()
      return message?.error?.message ?? ''
    }
    await eventually(async () => expect(await failure('huge')).toMatch(/exports at most 10485760 bytes/))
    expect(await failure('bomb')).toMatch(/unpacks to more than/)
    expect(await failure('xxe?as=text')).toMatch(/document type definition/)
    expect(await failure('macro')).toMatch(/malware/)
    for (const id of ['huge', 'bomb', 'xxe', 'macro']) table.remove(id)
  }, 180_000)

  eachWire(wireNames)(
    'gets the whole document if the token of the server expires during a read, over %s (DR14)',
    async (name) => {
      const wire = arena.wire(name)
      const uri = 'gdrive://docs/plan'
      expectOutcome(wire, await arena.read(wire, uri), 'ctl', uri)
      drive.table.change('plan', {})
      const before = drive.oauth.settings.given
      let ended = 0
      drive.intercept = ({ path }, response) => {
        if (!path.endsWith('/export') || ended++ > 0) return false
        drive.oauth.expire()
        sendDriveError(response, 401, 'authError', 'Invalid Credentials')
        return true
      }
      expectOutcome(wire, await arena.read(wire, uri), 'ctl', uri, '# Plan\n\nHello, 世界.\n')
      expect(ended).toBe(2)
      // Each of the processes may have renewed its own, and none more than once.
      expect(drive.oauth.settings.given - before).toBeLessThanOrEqual(6)
    },
  )

  test.each([400, 404, 410] as const)(
    'reads a new file although Drive has lost its feed of changes and answers with status %i (DR16)',
    async (status) => {
      const wire = arena.wire('stdio 2026-07-28')
      await listed(wire, 'gdrive://docs')
      const id = `after-${status}`
      drive.table.add({ id, parent: 'docs', content: 'after' })
      drive.forgetChanges(status)
      const uri = `gdrive://docs/${id}`
      await eventually(async () => expectOutcome(wire, await arena.read(wire, uri), 'ctl', uri, 'after'))
    },
  )
})

describe('a subscriber of a Google Drive mount', () => {
  /** A provider of its own, and what its watch tells. */
  const follow = async (provider: Provider, signal: AbortSignal) => {
    const seen: Change[] = []
    const changes = await provider.watch?.(signal)
    void (async () => {
      for await (const change of changes ?? []) seen.push(change)
    })()
    return seen
  }

  test.each([400, 404, 410] as const)(
    'is notified that everything may have changed if Drive has lost its feed of changes and answers with status %i (DR16)',
    async (status) => {
      const provider = await openDrive(drive)
      const ended = new AbortController()
      const seen = await follow(provider, ended.signal)
      drive.forgetChanges(status)
      await eventually(() => expect(seen).toContainEqual({}))
      ended.abort()
      await provider.close?.()
    },
  )

  test('is notified of a changed list when a file is gone, and of no change of a file that is not shared (DR02, DR04)', async () => {
    const provider = await openDrive(drive, { permissions: true })
    const view = createCatalog({ mounts: [{ address: 'gdrive://people', provider }] })
    const asAlice = view.view({ id: 'alice', roles: [alice] })
    const heard: string[] = []
    let lists = 0
    const subscription = asAlice.subscribe?.(({ uris, listed: isListed }) => {
      heard.push(...uris)
      if (isListed) lists++
    })
    const mine = 'gdrive://people/people/both'
    const theirs = 'gdrive://people/people/for-bob'
    await asAlice.list()
    expect(await subscription?.add([mine, theirs])).toEqual([mine])
    expect(await subscription?.addList()).toBe(true)
    drive.table.touch('for-bob')
    drive.table.write('both', 'written')
    await eventually(() => expect(heard).toContain(mine))
    expect(heard).not.toContain(theirs)
    const uris = async () => (await asAlice.list()).items.map(({ uri }) => uri)
    await eventually(async () => {
      const before = lists
      drive.table.move('for-alice', undefined)
      await vi.waitFor(() => expect(lists).toBeGreaterThan(before), { timeout: 5000 })
      expect(await uris()).not.toContain('gdrive://people/for-alice')
    })
    drive.table.move('for-alice', rootId)
    const before = lists
    drive.table.change('both', { permissions: [permission(account, 'owner')] })
    await eventually(() => expect(lists).toBeGreaterThan(before))
    await eventually(async () => expect(await uris()).not.toContain(mine))
    subscription?.close()
    await view.close()
  })
})
