import { writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Provider } from '../../src/core/provider.ts'
import { decoded } from '../../src/wrap/decoded.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { useFiles } from '../support/files.ts'

const principal = { id: 'p', roles: [] }
const address = 'file:///r'
const served = useFiles()

/** A view of the folder, and how often a read of it waited for room: for all of its calls, `calls` tells the bounds. */
async function open(wrap: (provider: Provider) => Provider = (provider) => provider) {
  const calls: (number | undefined)[] = []
  const provider = await served.open({ maxBytes: 8 * 1024 * 1024 })
  const counted: Provider = {
    ...provider,
    read: (request, context) => {
      calls.push(context.most)
      return provider.read(request, context)
    },
  }
  const view = createCatalog({ mounts: [{ address, provider: wrap(counted) }] }).view(principal)
  let waited = 0
  const room = async () => {
    waited++
  }
  return { calls, read: (path: string) => view.read(`${address}/${path}`, { room }), waited: () => waited, view }
}

describe('memory for large contents', () => {
  const large = 'line of text\n'.repeat(60_000)

  test('is waited for once before the unlimited read of a large content, and never for a small content', async () => {
    writeFileSync(`${served.folder.root}/large`, large)
    writeFileSync(`${served.folder.root}/small`, 'small')
    const { calls, read, waited } = await open()
    expect((await read('small')).contents).toMatchObject([{ text: 'small' }])
    expect([waited(), calls]).toEqual([0, [512 * 1024]])
    expect((await read('large')).contents).toMatchObject([{ text: large }])
    expect([waited(), calls]).toEqual([1, [512 * 1024, 512 * 1024, undefined]])
  })

  test('is not waited for if there is no queue', async () => {
    writeFileSync(`${served.folder.root}/large`, large)
    const { calls, view } = await open()
    expect((await view.read(`${address}/large`)).contents).toMatchObject([{ text: large }])
    expect(calls).toEqual([undefined])
  })

  test('is waited for through wrappers, and not for a small part or for a directory', async () => {
    writeFileSync(`${served.folder.root}/large`, large)
    const { read, waited } = await open((provider) => sliced(decoded(provider)))
    expect((await read('large')).contents).toMatchObject([{ text: large }])
    expect(waited()).toBe(1)
    const lines = await read('large?lines=59000-59001')
    expect(lines.contents).toMatchObject([{ text: 'line of text\nline of text\n' }])
    const before = waited()
    expect(before).toBe(1)
    await read('')
    expect(waited()).toBe(before)
  })

  test('is not waited for by a read over the limit of the mount, which is refused as too large at once', async () => {
    writeFileSync(`${served.folder.root}/huge`, Buffer.alloc(9 * 1024 * 1024))
    const { read, waited } = await open()
    await expect(read('huge')).rejects.toMatchObject({ kind: 'too-large', detail: { reason: 'too-large' } })
    expect(waited()).toBe(0)
  })
})
