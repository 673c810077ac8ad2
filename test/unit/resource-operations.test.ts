import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { View } from '../../src/core/view.ts'
import { files } from '../../src/providers/files/index.ts'
import { bindView } from '../../src/server/protocol/bind.ts'
import type { MethodCall } from '../../src/server/protocol/method.ts'
import { memory } from '../support/memory.ts'

const identity = { name: 'a', version: '1' }
const at = 'memory://docs'

const viewOf = (id = 'boss') =>
  createCatalog({
    mounts: [
      {
        address: at,
        provider: memory({
          'open/a.md': {
            text: '# A\n',
            version: '17',
            mimeType: 'text/markdown',
            size: 4,
            modified: 1_700_000_000_000,
          },
          'open/now.md': { text: '# Now\n', version: '18', modified: Date.now() },
          'hidden.md': { text: 'h', version: '1' },
        }),
        access: compileAccess([{ allow: ['boss'] }, { allow: ['guest'], match: ['open/**'] }]),
        cache: { ttlMs: 5000, scope: 'private' },
      },
    ],
  }).view({ id, roles: [id] })

async function ask(view: View, method: string, params: Readonly<Record<string, unknown>>, revision = '2026-07-28') {
  const { methods } = bindView(view, { ...identity, resourceOperations: true }, () => {}, undefined, undefined)
  const call = { params, revision, view, signal: new AbortController().signal, pass: {} } as unknown as MethodCall
  const found = methods.get(method)
  if (found === undefined) throw new Error(`There is no ${method}.`)
  return found(call)
}

const refusal = async (...given: Parameters<typeof ask>) =>
  ask(...given).then(
    () => undefined,
    ({ code, message, data }: { code: number; message: string; data: unknown }) => ({ code, message, data }),
  )

describe('the draft of resource operations', () => {
  test('is declared, and has its methods, only with the option resourceOperations', () => {
    const view = viewOf()
    const declared = (resourceOperations: boolean) => {
      const { capabilities, methods } = bindView(
        view,
        { ...identity, resourceOperations },
        () => {},
        undefined,
        undefined,
      )
      return [
        Object.keys(capabilities.extensions ?? {}).includes('io.modelcontextprotocol/resource-operations'),
        methods.has('resources/stat'),
      ]
    }
    expect(declared(true)).toEqual([true, true])
    expect(declared(false)).toEqual([false, false])
  })

  test('answers resources/stat with the metadata and the version of a resource or a directory, without the content', async () => {
    const view = viewOf()
    const answer = await ask(view, 'resources/stat', { uri: `${at}/open/a.md` })
    expect(JSON.stringify(answer)).not.toContain('# A')
    expect(answer).toMatchObject({
      resource: {
        ...{ uri: `${at}/open/a.md`, name: 'a.md', mimeType: 'text/markdown', size: 4 },
        annotations: { lastModified: '2023-11-14T22:13:20.000Z' },
      },
      ...{ version: '17', ttlMs: 5000, cacheScope: 'private' },
    })
    for (const uri of [at, `${at}/open`, `${at}/open/`])
      expect(await ask(view, 'resources/stat', { uri })).toMatchObject({
        resource: { uri, mimeType: 'inode/directory' },
        version: expect.stringMatching(/^sha256\./),
      })
  })

  test('has a digest as the version of a resource that was just written', async () => {
    const { version } = await ask(viewOf(), 'resources/stat', { uri: `${at}/open/now.md` })
    expect(version).toMatch(/^sha256\./)
  })

  test('gives different versions to writes of the same size in quick succession', async () => {
    const root = await mkdtemp(join(tmpdir(), 'hikidashi-stat-'))
    const catalog = createCatalog({ mounts: [{ address: 'files://a', provider: await files({ root, watch: false }) }] })
    const view = catalog.view({ id: 'a', roles: [] })
    const versions = new Set<unknown>()
    for (const text of ['one', 'two', 'six']) {
      await writeFile(join(root, 'a.txt'), text)
      versions.add((await ask(view, 'resources/stat', { uri: 'files://a/a.txt' })).version)
    }
    expect(versions.size).toBe(3)
    await catalog.close()
    await rm(root, { recursive: true })
  })

  test('refuses to write in the same way for every URI, absent, denied or there', async () => {
    const guest = viewOf('guest')
    for (const uri of [`${at}/open/a.md`, `${at}/hidden.md`, `${at}/nothing.md`, 'other://b/c']) {
      const contents = { uri, text: 'new' }
      const refused = { code: -32011, message: 'This resource is read-only.', data: { reason: 'notSupported', uri } }
      expect(await refusal(guest, 'resources/create', { uri, contents })).toEqual(refused)
      expect(await refusal(guest, 'resources/update', { uri, contents, ifMatch: '17' })).toEqual(refused)
      expect(await refusal(guest, 'resources/delete', { uri })).toEqual(refused)
    }
  })

  test('gives the same answer for an absent resource and a denied one', async () => {
    const guest = viewOf('guest')
    const answers = await Promise.all(
      ['hidden.md', 'nothing.md'].map((path) => refusal(guest, 'resources/stat', { uri: `${at}/${path}` })),
    )
    const plain = answers.map((one) => JSON.stringify(one).replaceAll(/hidden|nothing/g, 'x'))
    expect(plain[0]).toBe(plain[1])
    expect(answers[0]).toMatchObject({ code: -32602, data: { reason: 'notFound' } })
  })

  test('refuses a malformed URI, contents of another URI and a missing version, each with its reason', async () => {
    const uri = `${at}/open/a.md`
    expect(await refusal(viewOf(), 'resources/stat', { uri: 'no uri' })).toMatchObject({
      code: -32602,
      data: { reason: 'invalidUri' },
    })
    const contents = { uri: `${at}/other`, text: '' }
    expect(await refusal(viewOf(), 'resources/create', { uri, contents })).toMatchObject({
      data: { reason: 'invalidUri' },
    })
    await expect(ask(viewOf(), 'resources/update', { uri })).rejects.toThrow('ifMatch')
  })

  test('adds the version to the entries of a directory and to a content, except a version that a later state could have too', async () => {
    const key = 'io.modelcontextprotocol/resource-version'
    const { resources } = await ask(viewOf(), 'resources/directory/read', { uri: `${at}/open` })
    const versions = (resources as readonly { name: string; _meta?: object }[]).map(({ name, _meta }) => [
      name,
      (_meta as Record<string, unknown> | undefined)?.[key],
    ])
    expect(Object.fromEntries(versions)).toEqual({ 'a.md': '17', 'now.md': undefined })
    const versionAt = async (path: string) => {
      const { contents } = await ask(viewOf(), 'resources/read', { uri: `${at}/${path}` })
      return (contents as readonly { _meta?: Record<string, unknown> }[])[0]?._meta?.[key]
    }
    expect([await versionAt('open/a.md'), await versionAt('open/now.md')]).toEqual(['17', undefined])
  })

  test('has no methods in earlier revisions of the protocol', async () => {
    expect(await refusal(viewOf(), 'resources/stat', { uri: at }, '2025-11-25')).toMatchObject({ code: -32601 })
  })
})
