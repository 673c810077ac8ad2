import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type EmbedderOptions, openSearchIndex, type SearchIndex } from '../../src/search/index.ts'
import { openStore, type Store } from '../../src/store/index.ts'

// Each takes a second or two; on a machine that is busy with other things, whatever that makes of it.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

/** What means the same has the same vector here: an animal, a vehicle, or neither. */
function meaningOf(text: string): readonly number[] {
  const is = (pattern: RegExp) => (pattern.test(text) ? 1 : 0)
  return [is(/\bcat|kitten|feline|猫/), is(/car|vehicle|automobile/), 0.1]
}

interface Request {
  readonly url: string
  readonly authorization: string | undefined
  readonly body: { readonly model: string; readonly input: readonly string[] }
}

let folder: string
let server: Server
let url: string
let store: Store
let requests: Request[]
let answer: 'well' | 'slowly' | 'with 500' | 'nonsense'
const opened: SearchIndex[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hikidashi-vectors-'))
  store = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
  requests = []
  answer = 'well'
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Request['body']
    requests.push({ url: request.url ?? '', authorization: request.headers.authorization, body })
    if (answer === 'slowly') return
    if (answer === 'with 500') return void response.writeHead(500).end('a text that nobody should see')
    if (answer === 'nonsense') return void response.end('{"data":[{"embedding":["x"]}],"embeddings":[[]]}')
    const vectors = body.input.map(meaningOf)
    const data = vectors.map((embedding, index) => ({ index, embedding })).reverse()
    response.end(JSON.stringify(request.url === '/api/embed' ? { embeddings: vectors } : { data }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((index) => index.close()))
  await store.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

const open = async (embedder: EmbedderOptions) => {
  const index = await openSearchIndex({ store, name: 'test', embedder })
  opened.push(index)
  return index
}
const openai = (timeoutMs = 30_000) => open({ model: 'm', openai: { url: `${url}/v1/`, key: 'a-key' }, timeoutMs })
const put = (index: SearchIndex, ...texts: readonly string[]) =>
  index.put(texts.map((text, place) => ({ uri: `files://m/${place}`, mount: 'files://m', version: '1', text })))
const search = async (index: SearchIndex, text: string) => {
  const found: string[] = []
  const degraded: string[] = []
  for await (const { uri } of index.search({ text, degraded: (why) => degraded.push(why) })) found.push(uri.slice(-1))
  return { found, degraded }
}
/** Waits until something holds. */
const eventually = (holds: () => Promise<boolean>, what: string) =>
  vi.waitFor(async () => expect(await holds(), what).toBe(true), { timeout: 60_000, interval: 20 })
const done = (index: SearchIndex) =>
  eventually(async () => (await index.embedding())?.waiting === 0, 'all have vectors')

describe('the vectors of a search', () => {
  test('find texts of the same meaning, beside texts with the words', async () => {
    const index = await openai()
    await put(index, 'a kitten sleeps', 'an automobile drives', 'a feline eats a banana', 'nothing at all')
    await done(index)
    const { found, degraded } = await search(index, 'cat banana')
    expect(found.slice(0, 1)).toEqual(['2'])
    expect(found).toContain('0')
    expect(degraded).toEqual([])
    expect(
      requests.every(({ url, authorization }) => url === '/v1/embeddings' && authorization === 'Bearer a-key'),
    ).toBe(true)
    expect(requests[0]?.body.model).toBe('m')
    // What is put again has another vector, and what is removed none.
    await put(index, 'a vehicle')
    await done(index)
    expect((await search(index, 'cat')).found.slice(0, 1)).toEqual(['2'])
    expect((await search(index, 'car')).found.slice(0, 2).sort()).toEqual(['0', '1'])
    await index.remove(['files://m/2'])
    expect((await search(index, 'cat')).found).not.toContain('2')
  })

  test('count with the configured weight, and by default together with the words', async () => {
    const texts = ['a cat and a banana', 'a car, a banana and a banana', 'a kitten', 'a feline']
    const order = async (weight?: number) => {
      const index = await open({ model: 'm', ollama: { url }, ...(weight === undefined ? {} : { weight }) })
      await put(index, ...texts)
      await done(index)
      return (await search(index, 'banana kitten')).found
    }
    // By words 2 (the rarest), 1, 0; by vectors 0, 2, 3.
    const byWords = await order(0)
    const byVectors = await order(1)
    expect(byWords.at(-1)).toBe('3')
    expect(byVectors.at(-1)).toBe('1')
    expect((await order()).indexOf('1')).toBeLessThan(byVectors.indexOf('1'))
  })

  test('belong to one model: another model computes all again', async () => {
    const first = await open({ model: 'one', ollama: { url } })
    await put(first, 'a kitten', 'a car')
    await done(first)
    expect(requests.every(({ url }) => url === '/api/embed')).toBe(true)
    await first.close()
    const second = await open({ model: 'two', ollama: { url } })
    await eventually(
      async () => requests.filter(({ body }) => body.model === 'two').flatMap(({ body }) => body.input).length >= 2,
      'it is made anew',
    )
    await eventually(async () => (await search(second, 'feline')).found.includes('0'), 'it is found')
  })

  for (const how of ['with 500', 'nonsense', 'slowly'] as const) {
    test(`are skipped if the service answers ${how}, and computed later`, async () => {
      answer = how
      const index = await openai(how === 'slowly' ? 1000 : 30_000)
      await put(index, 'a kitten sleeps', 'a cat')
      const { found, degraded } = await search(index, 'cat')
      expect(found).toEqual(['1'])
      expect(degraded).toEqual(['The embedder fails: the hits are found by words alone.'])
      await eventually(async () => (await index.embedding())?.failing !== undefined, 'it is told')
      const state = await index.embedding()
      expect(state?.waiting).toBe(2)
      expect(JSON.stringify(state)).not.toMatch(/127\.0\.0\.1|a-key|nobody should see/)
      answer = 'well'
      server.closeAllConnections()
      await done(index)
      await eventually(async () => (await search(index, 'cat')).found.length === 2, 'both are found')
      expect((await index.embedding())?.failing).toBeUndefined()
    })
  }

  test('of a model in this process need a package, and the error names it', async () => {
    await expect(open({ model: 'm', local: {} })).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('npm install @huggingface/transformers'),
    })
  })

  test('are not requested unless configured', async () => {
    const index = await openSearchIndex({ store, name: 'test' })
    opened.push(index)
    await put(index, 'a kitten')
    expect(await search(index, 'kitten')).toEqual({ found: ['0'], degraded: [] })
    expect(await index.embedding()).toBeUndefined()
    expect(requests).toEqual([])
  })
})
