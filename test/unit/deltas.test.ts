import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTextHistory } from '../../src/config/earlier.ts'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { createMemoryTexts, type DeltaMetadata, type EarlierTexts } from '../../src/core/earlier.ts'
import { unifiedDiff } from '../../src/core/kit/line-diff.ts'
import { metaKeys } from '../../src/core/meta.ts'
import type { Provider } from '../../src/core/provider.ts'
import { createScrubber } from '../../src/core/scrub.ts'
import type { View } from '../../src/core/view.ts'
import { files } from '../../src/providers/files/index.ts'
import { changedTools, resourceTools } from '../../src/server/tools/index.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { live } from '../support/live.ts'
import { memory } from '../support/memory.ts'
import { applyDiff } from '../support/patch.ts'
import { volumeOf } from '../support/volume.ts'

let folder: string
let store: Store
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hikidashi-deltas-'))
  store = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
})
afterAll(async () => {
  await store.close()
  await rm(folder, { recursive: true })
})

const boss = { id: 'boss', roles: ['boss'] }
const guest = { id: 'guest', roles: ['guest'] }
const at = 'memory://docs/a.txt'

function catalogOf(provider: Provider, earlier: EarlierTexts = createMemoryTexts()) {
  const access = compileAccess([{ allow: ['boss'] }, { allow: ['guest'], match: ['open/**'] }])
  return createCatalog({ mounts: [{ address: 'memory://docs', provider, access }], earlier: async () => earlier })
}

async function readSince(view: View, since: string, uri = at) {
  const { contents } = await view.read(`${uri}?since=${encodeURIComponent(since)}`)
  const [content] = contents
  if (content === undefined || !('text' in content)) throw new Error('This is no text.')
  return { ...content, delta: content.meta?.[metaKeys.delta] as DeltaMetadata }
}

const long = Array.from({ length: 100 }, (_, line) => `line ${line}\n`).join('')

describe('a unified diff', () => {
  const lines = fc.array(fc.constantFrom('a', 'b', 'c', '', 'long line'), { maxLength: 30 })
  const text = fc
    .tuple(lines, fc.boolean())
    .map(([some, isEnded]) => some.join('\n') + (isEnded && some.length > 0 ? '\n' : ''))

  test('applied to the text before gives the text after', () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        const diff = unifiedDiff(before, after)
        expect(diff === '').toBe(before === after)
        expect(applyDiff(before, diff ?? '')).toBe(after)
      }),
      { numRuns: volumeOf(5000, 300) },
    )
  })

  test('is as `diff -u` writes it', () => {
    const changed = long.replace('line 50\n', 'line fifty\n')
    expect(unifiedDiff(long, changed)).toBe(
      '@@ -48,7 +48,7 @@\n line 47\n line 48\n line 49\n-line 50\n+line fifty\n line 51\n line 52\n line 53\n',
    )
    expect(unifiedDiff('', 'a')).toBe('@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n')
  })

  test('of texts that differ in too many lines is not made', () => {
    const other = (name: string) => Array.from({ length: 3000 }, (_, line) => `${name} ${line}\n`).join('')
    expect(unifiedDiff(other('a'), other('b'))).toBeUndefined()
  })
})

describe('a read since a version', () => {
  test('says that nothing has changed, or gives a diff, or the whole text if that is shorter', async () => {
    const source = live({ 'a.txt': { text: long, version: '1' } })
    const view = catalogOf(source).view(boss)
    const first = await readSince(view, '')
    expect(first).toMatchObject({ text: long, delta: { state: 'whole' } })
    const version = first.version ?? ''
    expect(await readSince(view, version)).toMatchObject({ text: '', version, delta: { state: 'unchanged' } })
    expect(await readSince(view, '1')).toMatchObject({ text: '', delta: { state: 'unchanged' } })
    source.set('a.txt', { text: long.replace('line 7\n', 'seven\n'), version: '2' })
    const second = await readSince(view, version)
    expect(second).toMatchObject({ mimeType: 'text/x-diff', delta: { since: version, state: 'diff' } })
    expect(applyDiff(long, second.text)).toBe(long.replace('line 7\n', 'seven\n'))
    source.set('a.txt', { text: 'short', version: '3' })
    expect(await readSince(view, second.version ?? '')).toMatchObject({
      text: 'short',
      delta: { state: 'whole', reason: 'shorter' },
    })
  })

  test('gives the whole text, and the reason, for an unknown version', async () => {
    const view = catalogOf(memory({ 'a.txt': { text: long, version: '2' } })).view(boss)
    expect(await readSince(view, '1')).toMatchObject({ text: long, delta: { state: 'whole', reason: 'unknown' } })
  })

  test('tells apart two texts of one size that have the same version of the source', async () => {
    const source = live({ 'a.txt': { text: 'one', version: '1' } })
    const view = catalogOf(source).view(boss)
    const first = await readSince(view, '')
    source.set('a.txt', { text: 'two', version: '1' })
    const second = await readSince(view, first.version ?? '')
    expect(second).toMatchObject({ text: 'two', delta: { state: 'whole' } })
    expect(second.version).not.toBe(first.version)
    expect((await readSince(view, '1')).delta.state).toBe('whole')
  })

  test('is refused like an absent resource if the caller may not see it now', async () => {
    const view = catalogOf(memory({ 'a.txt': { text: long, version: '1' } })).view(guest)
    const refusal = (uri: string) => view.read(uri).then(String, ({ kind, message }) => `${kind} ${message}`)
    expect(await refusal(`${at}?since=1`)).toBe(await refusal('memory://docs/nothing.txt?since=1'))
  })

  test('of binary data gives no bytes for the current version, and all of them for another version', async () => {
    const source = live({ 'a.bin': { bytes: Buffer.from([0, 1, 2]), version: '1' } })
    const view = catalogOf(source).view(boss)
    const lengthSince = async (since: string) => {
      const [content] = (await view.read(`memory://docs/a.bin?since=${since}`)).contents
      return content !== undefined && 'bytes' in content ? content.bytes.length : undefined
    }
    expect([await lengthSince('1'), await lengthSince('2')]).toEqual([0, 3])
  })

  test('gives a diff after a restart too, without known secrets, but not if the mount is configured differently', async () => {
    const secret = 'correct-horse-battery'
    const scrubber = createScrubber([secret])
    const config = (redact: string) => [{ address: 'memory://docs', config: { provider: 'inline', redact } }] as never
    const open = (redact: string) => createTextHistory(async () => store, config(redact), scrubber)
    const source = live({ 'a.txt': { text: `${long}${secret}\n`, version: '1' } })
    const first = await readSince(catalogOf(source, open('off')).view(boss), '')
    source.set('a.txt', { text: long, version: '2' })
    const again = await readSince(catalogOf(source, open('off')).view(boss), first.version ?? '')
    expect(again).toMatchObject({ delta: { state: 'diff' } })
    expect(first.text + again.text).not.toContain(secret)
    const other = await readSince(catalogOf(source, open('mask')).view(boss), first.version ?? '')
    expect(other).toMatchObject({ delta: { state: 'whole', reason: 'unknown' } })
  })

  test('is left to a source whose own template has the parameter "since"', async () => {
    const inner = memory({ 'a.txt': { text: long, version: '1' } })
    const own: Provider = {
      ...inner,
      templates: async () => [{ template: '{+path}{?since}', name: 'own' }],
      read: async (request, context) => {
        const since = request.params.get('since')
        return since === undefined ? inner.read(request, context) : [{ text: `own ${since}` }]
      },
    }
    expect((await readSince(catalogOf(own).view(boss), '7d')).text).toBe('own 7d')
  })
})

describe('the list of changed resources', () => {
  test('is exact, says how many are beyond the limit, and has only those that the caller may see now', async () => {
    const entries = {
      'open/a.txt': { text: 'a', version: '1' },
      'open/b.txt': { text: 'b', version: '1' },
      'c.txt': 'c',
    }
    const source = live(entries)
    const catalog = catalogOf(source)
    const changed = (principal: typeof boss, since?: string, limit = 10) =>
      catalog.view(principal).changed?.({ limit, ...(since === undefined ? {} : { since }) })
    const first = await changed(guest)
    expect(first).toMatchObject({ unknown: false, created: [], updated: [], deleted: [] })
    const since = first?.since ?? ''
    expect((await changed(guest, since))?.since).toBe(since)
    source.set('open/a.txt', { text: 'a2', version: '2' })
    source.set('open/b.txt', undefined)
    source.set('open/d.txt', { text: 'd', version: '1' })
    source.set('hidden.txt', { text: 'h', version: '1' })
    source.set('c.txt', undefined)
    source.set('other.txt', { text: 'o', version: '1' })
    const told = await changed(guest, since)
    expect(told).toMatchObject({
      created: [{ uri: 'memory://docs/open/d.txt', version: '1' }],
      updated: [{ uri: 'memory://docs/open/a.txt', version: '2', before: '1' }],
      deleted: [{ uri: 'memory://docs/open/b.txt', version: '1' }],
      more: 0,
    })
    expect((await changed(guest, since, 1))?.more).toBe(2)
    // Another caller cannot use it.
    expect(await changed(boss, since)).toMatchObject({ unknown: true, created: [] })
    expect(await changed(guest, 'A'.repeat(22))).toMatchObject({ unknown: true })
  })

  test('has no deletions while a mount does not answer, and its changes once it answers again', async () => {
    const source = live({ 'open/a.txt': { text: 'a', version: '1' } })
    let isAway = false
    const provider: Provider = {
      ...source,
      list: (query, context) => {
        if (isAway) throw Object.assign(new Error('away'), {})
        return source.list(query, context)
      },
    }
    const view = catalogOf(provider).view(boss)
    const { since = '' } = (await view.changed?.({ limit: 10 })) ?? {}
    isAway = true
    const told = await view.changed?.({ limit: 10, since }).catch(() => undefined)
    expect(told?.deleted ?? []).toEqual([])
    isAway = false
    source.set('open/a.txt', { text: 'b', version: '2' })
    expect(await view.changed?.({ limit: 10, since })).toMatchObject({ updated: [{ version: '2', before: '1' }] })
  })
})

describe('the tools for changes:', () => {
  const call = async (view: View, name: string, given: Readonly<Record<string, unknown>>) => {
    const tool = [...resourceTools(view), ...changedTools(view)].find((one) => one.name === name)
    return tool?.call(given, { principal: boss, signal: new AbortController().signal })
  }

  test('read_resource answers with a difference since the version of its last answer', async () => {
    const root = await mkdtemp(join(folder, 'root-'))
    await writeFile(join(root, 'a.txt'), long)
    const catalog = createCatalog({
      mounts: [{ address: 'memory://docs', provider: await files({ root, watch: false }) }],
    })
    const view = catalog.view(boss)
    const contentOf = (answer: Awaited<ReturnType<typeof call>>) =>
      (answer?.structured?.contents as readonly Readonly<Record<string, unknown>>[] | undefined)?.[0]
    const first = contentOf(await call(view, 'read_resource', { uri: at }))
    expect(first).toMatchObject({ text: long, version: expect.any(String) })
    await writeFile(join(root, 'a.txt'), `${long}more\n`)
    const second = await call(view, 'read_resource', { uri: at, since: first?.version })
    expect(contentOf(second)).toMatchObject({ uri: at, state: 'diff' })
    expect(second?.text).toContain('+more')
    const third = await call(view, 'read_resource', { uri: at, since: contentOf(second)?.version })
    expect(third?.text).toBe('[Nothing has changed since this version.]')
    await expect(call(view, 'read_resource', { uri: at, since: '1', lines: '1-2' })).rejects.toThrow('since')
    await catalog.close()
  })

  test('what_changed lists what was updated, or says that the earlier state is too old or unknown', async () => {
    const source = live({ 'a.txt': { text: 'a', version: '1' } })
    const view = catalogOf(source).view(boss)
    const first = await call(view, 'what_changed', {})
    expect(first?.structured).toMatchObject({ unknown: false, created: [] })
    source.set('a.txt', { text: 'b', version: '2' })
    const second = await call(view, 'what_changed', { since: first?.structured?.since })
    expect(second?.text).toContain(`- updated  ${at}`)
    expect((await call(view, 'what_changed', { since: 'gone' }))?.text).toContain('too old or unknown')
  })
})
