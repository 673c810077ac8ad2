import { describe, expect, test } from 'vitest'
import { useArena } from './harness/arena.ts'
import { guessed } from './harness/known.ts'
import type { Wire } from './harness/wire.ts'

// The last line: a source tells every secret that the process knows, and none of them may leave. That none did, in whatever
// spelling, on any channel, the arena looks after (oracle O1); these tests look after what comes in its place.

const arena = useArena({ known: true, pages: { size: 100 } })
const mark = '[redacted]'

interface Part {
  readonly uri: string
  readonly text?: string
  readonly blob?: string
  readonly _meta?: Readonly<Record<string, unknown>>
}

async function contentsOf(wire: Wire, path: string): Promise<readonly Part[]> {
  const { message, raw } = await arena.read(wire, `known://values/${path}`)
  expect(message?.error, raw.toString().slice(0, 300)).toBeUndefined()
  return message?.result?.contents as readonly Part[]
}

describe('a secret that the process knows', () => {
  test('is in no text, in any spelling, and in no bytes (SE06)', async () => {
    for (const wire of arena.wires) {
      expect((await contentsOf(wire, 'text'))[0]?.text).toBe([mark, mark, mark, mark].join(' and '))
      expect((await contentsOf(wire, 'json'))[0]?.text).toBe(JSON.stringify({ a: JSON.stringify({ token: mark }) }))
      const blobOf = async (path: string) => {
        const { blob = '' } = (await contentsOf(wire, path))[0] ?? {}
        expect(blob, 'strict base64').toBe(Buffer.from(blob, 'base64').toString('base64'))
        return Buffer.from(blob, 'base64')
      }
      expect(await blobOf('bytes')).toEqual(
        Buffer.concat([Buffer.from([0, 255, 254]), Buffer.from(mark), Buffer.from([0, 1])]),
      )
      expect((await blobOf('wide')).toString('latin1')).toContain(mark)
    }
  })

  test('is removed from a stream that is split within it, and the text around it is unchanged (SE07)', async () => {
    for (const wire of arena.wires) {
      const [content] = await contentsOf(wire, 'stream')
      const bytes = Buffer.from(content?.blob ?? '', 'base64')
      expect(bytes.length).toBe(600_001 + mark.length)
      expect(bytes.subarray(300_001, 300_001 + mark.length).toString()).toBe(mark)
    }
  })

  test('is removed from an answer that arrives as an event after others (SE07)', async () => {
    for (const wire of arena.wires) {
      const token = `progress of ${wire.name}`
      const params = { uri: 'known://values/slow', _meta: { progressToken: token } }
      const answer = await wire.call('resources/read', params)
      expect(answer.message?.result?.contents).toMatchObject([{ text: mark }])
      if (wire.transport === 'http')
        expect(answer.headers?.find(([name]) => name === 'content-type')?.[1]).toBe('text/event-stream')
    }
  })

  test('is in no name, title, description, completion or metadata, on any page of a list (SE07, SE17)', async () => {
    for (const wire of arena.wires) {
      const listed: Part[] = []
      let cursor: string | undefined
      do {
        const { message } = await arena.ask(wire, 'resources/list', cursor === undefined ? {} : { cursor })
        listed.push(...((message?.result?.resources ?? []) as readonly Part[]))
        cursor = message?.result?.nextCursor as string | undefined
      } while (cursor !== undefined)
      const own = listed.filter(({ uri }) => uri.startsWith('known://values/'))
      expect(own.length).toBe(8)
      // A URI with the mark in it is still one.
      expect(own[0]).toMatchObject({
        uri: `known://values/a-${encodeURIComponent(mark)}.txt`,
        name: `a-${mark}.txt`,
        description: `is ${mark}`,
      })
      for (const { uri } of listed) expect(uri).toMatch(/^[\w:/?#[\]@!$&'()*+,;=.~%-]+$/)
      const directory = await arena.ask(wire, 'resources/directory/read', { uri: 'known://values' })
      expect(directory.raw.toString()).toContain(mark)
      const templates = await arena.ask(wire, 'resources/templates/list')
      expect(templates.raw.toString()).toContain(`Says nothing of ${mark}.`)
      const ref = { type: 'ref/resource', uri: 'known://values/echo{?text}' }
      const completion = await arena.ask(wire, 'completion/complete', { ref, argument: { name: 'text', value: '' } })
      expect(completion.message?.result?.completion).toMatchObject({ values: ['fine', mark, `${mark}/a`] })
      const [content] = await contentsOf(wire, 'meta')
      expect(content?._meta).toMatchObject({ [mark]: mark, list: [{ deep: { [mark]: [mark] } }] })
      expect((await contentsOf(wire, 'parts')).map(({ uri }) => uri)).toEqual([
        'known://values/text',
        `known://values/${encodeURIComponent(mark)}.txt`,
      ])
    }
  })

  test('is in no error: what a source throws unexpectedly is not sent, and messages that are sent are redacted (SE11)', async () => {
    for (const wire of arena.wires) {
      for (const path of ['throws', 'aggregate', 'string', 'object']) {
        const { message } = await arena.read(wire, `known://values/${path}`)
        expect(message?.error).toEqual({ code: -32603, message: 'Internal error' })
      }
      const { message } = await arena.read(wire, 'known://values/invalid')
      expect(message?.error).toMatchObject({ message: `No such thing as ${mark}.`, data: { near: mark } })
    }
  })
})

describe('text that a client has sent itself', () => {
  test('is returned unchanged in ids and URIs, so that nobody learns whether a guess was right (SE19)', async () => {
    for (const wire of arena.wires) {
      for (const text of [guessed, `${guessed}x`.slice(1)]) {
        const [found, missing] = [`known://values/echo?text=${text}`, `known://values/${text}`]
        const answer = await wire.call('resources/read', { uri: found }, { id: text })
        expect(answer.message?.id).toBe(text)
        expect(answer.message?.result?.contents).toMatchObject([{ uri: found }])
        expect((await arena.read(wire, missing)).message?.error?.data).toEqual({ uri: missing })
      }
      // What the source says is another matter.
      expect((await contentsOf(wire, `echo?text=${guessed}`))[0]?.text).toBe(mark)
    }
  })
})
