import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { HttpService } from '../../src/server/index.ts'
import { type EraClient, eras, type Place } from '../support/era-clients.ts'
import type { Folder } from '../support/folder.ts'
import { createSample, pixel, sampleAddress, sampleSize, serveSample, stdioCommand } from '../support/served-folder.ts'

let folder: Folder
let service: HttpService

beforeAll(async () => {
  folder = createSample()
  service = await serveSample(folder)
})

afterAll(async () => {
  await service.close()
  folder.remove()
})

const transports: readonly (readonly [name: string, place: () => Place])[] = [
  ['stdio', () => stdioCommand(folder)],
  ['HTTP', () => ({ url: service.url })],
]

async function listAll(client: EraClient) {
  const uris: string[] = []
  let pages = 0
  let cursor: string | undefined
  do {
    const page = await client.listResources(cursor === undefined ? undefined : { cursor })
    uris.push(...page.resources.map(({ uri }) => uri))
    cursor = page.nextCursor
    pages++
  } while (cursor !== undefined)
  return { uris, pages }
}

describe.each(eras)('the client $name', ({ connect, revision, absent, aggregates }) => {
  describe.each(transports)('over %s', (transport, place) => {
    let client: EraClient
    let agreed: string | undefined

    beforeAll(async () => {
      const connected = await connect(place())
      client = connected.client
      agreed = connected.revision
    })

    afterAll(async () => {
      await client.close()
    })

    test(`negotiates revision ${revision}`, () => {
      expect(agreed).toBe(revision)
    })

    test('lists every resource once, over all pages', async () => {
      const { uris, pages } = await listAll(client)
      expect(pages).toBe(aggregates ? 1 : sampleSize.pages)
      // The command, which stdio starts, lists its overview too.
      const size = sampleSize.resources + (transport === 'stdio' ? 1 : 0)
      expect(uris).toHaveLength(size)
      expect(new Set(uris).size).toBe(size)
      expect(uris).toContain(`${sampleAddress}/readme.md`)
    })

    test('reads a resource with a Japanese name by its listed URI', async () => {
      const { uris } = await listAll(client)
      const japanese = uris.find((uri) => uri.endsWith('.md') && uri.includes('%')) ?? 'none'
      expect((await client.readResource({ uri: japanese })).contents).toMatchObject([
        { uri: japanese, text: '引き出し\n' },
      ])
    })

    test('reads text as text and bytes as base64', async () => {
      const text = `${sampleAddress}/readme.md`
      const binary = `${sampleAddress}/pixel.png`
      expect((await client.readResource({ uri: text })).contents).toMatchObject([
        { uri: text, mimeType: 'text/markdown', text: '# Sample\n' },
      ])
      expect((await client.readResource({ uri: binary })).contents).toMatchObject([
        { uri: binary, mimeType: 'image/png', blob: pixel },
      ])
    })

    test(`gets the error ${absent} for an absent resource`, async () => {
      const uri = `${sampleAddress}/absent.txt`
      await expect(client.readResource({ uri })).rejects.toMatchObject({ code: absent, data: { uri } })
    })

    test('lists a template and completes a path of it', async () => {
      const { resourceTemplates } = await client.listResourceTemplates()
      const uri = `${sampleAddress}/{+path}`
      expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain(uri)
      const ref = { type: 'ref/resource', uri } as const
      const complete = async (value: string) =>
        (await client.complete({ ref, argument: { name: 'path', value } })).completion.values
      expect(await complete('re')).toEqual(['readme.md'])
      expect(await complete('ma')).toEqual(['many/'])
      expect(await complete('many/079')).toHaveLength(10)
    })
  })
})
