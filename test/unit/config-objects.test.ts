import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { planConfig } from '../../src/config/plan.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import { metaKeys } from '../../src/core/meta.ts'
import { type Bucket, startBucket } from '../support/buckets.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import type { GcsStandIn } from '../support/gcs-stand-in.ts'
import type { S3StandIn } from '../support/s3-stand-in.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })

let folder: Folder
const opened = new Set<Catalog>()
beforeEach(() => {
  folder = createFolder()
})
afterEach(async () => {
  await Promise.all([...opened].map((catalog) => catalog.close()))
  opened.clear()
  folder.remove()
})

const everybody = { id: 'x', roles: [] }

async function load(mounts: unknown) {
  folder.write({ 'hikidashi.json': JSON.stringify({ mounts }) })
  return loadConfig(folder.at('hikidashi.json'))
}

async function problemsIn(mount: unknown): Promise<readonly string[]> {
  const loaded = await load({ 's3://x': mount })
  return 'problems' in loaded ? loaded.problems.map(({ key, message, fix }) => `${key}: ${message} ${fix}`) : []
}

async function open(mount: unknown) {
  const loaded = await load({ 's3://x': mount })
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
  const catalog = await openCatalog(planConfig(loaded.config), { log: () => {} })
  opened.add(catalog)
  return { view: catalog.view(everybody), config: loaded.config }
}

describe.each(['s3', 'gcs'] as const)('a mount of %s in a configuration', (provider) => {
  let bucket: Bucket<S3StandIn | GcsStandIn>
  beforeEach(async () => {
    bucket = await startBucket(provider)
    bucket.store.table.put(
      'docs/手順.txt',
      Buffer.from([0x93, 0xfa, 0x96, 0x7b, 0x8c, 0xea, 0x82, 0xcc, 0x95, 0xb6, 0x8f, 0x91]),
    )
    bucket.store.table.put('docs/readme.md', '---\ntitle: The readme\n---\n# Read me\n')
    bucket.store.table.put('large.log', 'line\n'.repeat(100_000))
  })
  afterEach(() => bucket.close())

  test('serves documents with titles, encodings and parts, as a folder does', async () => {
    const { view } = await open({ ...bucket.mount, language: 'ja', frontMatter: '**/*.md', maxBytes: '100KiB' })
    const { items } = await view.list()
    expect(items.map(({ uri, title }) => [uri, title])).toEqual([
      ['s3://x/docs/readme.md', 'The readme'],
      ['s3://x/docs/%E6%89%8B%E9%A0%86.txt', undefined],
      ['s3://x/large.log', undefined],
    ])
    const [japanese] = (await view.read('s3://x/docs/手順.txt')).contents
    expect(japanese).toMatchObject({ text: '日本語の文書', meta: { [metaKeys.encoding]: 'shift_jis' } })
    const [part] = (await view.read('s3://x/large.log?lines=99999-100000')).contents
    expect(part).toMatchObject({ text: 'line\nline\n' })
    const [end] = (await view.read('s3://x/large.log?tail=1')).contents
    expect(end).toMatchObject({ text: 'line\n' })
    await expect(view.read('s3://x/large.log')).rejects.toMatchObject({ kind: 'too-large' })
    const [folderOf] = (await view.read('s3://x/docs/')).contents
    expect(folderOf).toMatchObject({ mimeType: 'inode/directory' })
  })

  test('gives links to objects if configured, and is refused if the links would bypass redaction or last more than an hour', async () => {
    const { view } = await open({ ...bucket.mount, maxBytes: '100KiB', links: '1m' })
    const [content] = (await view.read('s3://x/large.log')).contents
    expect(content?.meta).toMatchObject({ [metaKeys.truncated]: true, [metaKeys.size]: 500_000 })
    const link = content?.meta?.[metaKeys.link] as { href: string } | undefined
    expect(await (await fetch(link?.href ?? '')).text()).toBe('line\n'.repeat(100_000))
    await expect(open({ ...bucket.mount, links: '1m', redact: 'mask' })).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(/bypasses "redact"/),
    })
    expect(await problemsIn({ ...bucket.mount, links: '2h' })).toEqual([
      'mounts["s3://x"].links: The duration is too short or too long. It must be from "1s" to "1h".',
    ])
  })

  test('reports changes if it is polled', async () => {
    const { view } = await open({ ...bucket.mount, poll: '100ms' })
    const told: string[] = []
    const subscription = view.subscribe?.(({ uris }) => void told.push(...uris))
    await subscription?.add(['s3://x/large.log'])
    bucket.store.table.put('large.log', 'shorter')
    await expect.poll(() => told, { timeout: 30_000 }).toEqual(['s3://x/large.log'])
    const [content] = (await view.read('s3://x/large.log')).contents
    expect(content).toMatchObject({ text: 'shorter' })
    subscription?.close()
  })

  test('refuses an invalid endpoint, bucket or prefix when it is opened', async () => {
    for (const [wrong, words] of [
      [{ endpoint: 'http://169.254.169.254' }, /gives out credentials/],
      [{ endpoint: 'http://storage.example.com' }, /not encrypted/],
      [{ endpoint: 'https://key:secret@storage.example.com' }, /not the address of a server/],
      [{ bucket: 'a/b' }, /name of a bucket/],
      [{ prefix: '../x' }, /prefix/],
    ] as const) {
      const error = await open({ ...bucket.mount, ...wrong }).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ kind: 'invalid', message: expect.stringMatching(words) })
      expect((error as Error).message).toMatch(/The mount s3:\/\/x cannot be opened/)
      expect((error as Error).message).not.toContain('key:secret')
    }
  })
})

describe('the credentials of an s3 mount', () => {
  const mount = { provider: 's3', bucket: 'bucket' }

  test('are refused if they are literal, and are registered as known secrets', async () => {
    const [problem, ...others] = await problemsIn({ ...mount, accessKeyId: 'AKID', secretAccessKey: { env: 'X' } })
    expect(others).toEqual([])
    expect(problem).toMatch(/accessKeyId: This is a literal secret\./)
    folder.write({ 'the-secret': 'a-very-secret-key\n', 'the-id': 'AKIDEXAMPLE\n' })
    const keys = { accessKeyId: { file: 'the-id' }, secretAccessKey: { file: 'the-secret' } }
    expect((await open({ ...mount, ...keys })).config.secrets).toEqual(['AKIDEXAMPLE', 'a-very-secret-key'])
  })

  test('are refused if a part is missing or has no value, or if "anonymous" contradicts them', async () => {
    folder.write({ id: 'AKIDEXAMPLE' })
    await expect(open({ ...mount, accessKeyId: { file: 'id' } })).rejects.toMatchObject({
      message: expect.stringMatching(/An access key has two parts/),
    })
    const absent = { accessKeyId: { file: 'id' }, secretAccessKey: { env: 'HIKIDASHI_TEST_NO_SUCH_VARIABLE' } }
    await expect(open({ ...mount, ...absent })).rejects.toMatchObject({
      message: expect.stringMatching(
        /"secretAccessKey" has no value\. The environment variable HIKIDASHI_TEST_NO_SUCH_VARIABLE is not set/,
      ),
    })
    await expect(open({ ...mount, anonymous: true, profile: 'p' })).rejects.toMatchObject({ kind: 'invalid' })
    await expect(open({ ...mount, anonymous: true, links: '1m' })).rejects.toMatchObject({ kind: 'invalid' })
  })
})

test('a missing key file of a gcs mount is a problem of the configuration', async () => {
  expect(await problemsIn({ provider: 'gcs', bucket: 'bucket', keyFile: 'none.json' })).toEqual([
    expect.stringMatching(/^mounts\["s3:\/\/x"\]\.keyFile: There is no file .*none\.json\. Create it/),
  ])
})
