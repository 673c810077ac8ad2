import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { faultyFrames } from './corpus/frames.ts'
import { isStdio, type StdioWire, useArena, wireNames } from './harness/arena.ts'
import { jsonHeaders, modernHeaders, openHttp, send, sessionHeaders } from './harness/http.ts'
import { openStdio } from './harness/stdio.ts'
import { startFixture } from './harness/target.ts'
import { type Answer, legacy, meta, type Wire, withMeta } from './harness/wire.ts'
import { controlPath } from './harness/world.ts'

const arena = useArena()
const stdioNames = ['stdio 2026-07-28', 'stdio 2025-11-25'] as const

const controlParams = () => ({ uri: `${arena.world.address}/${controlPath}` })
const honestOf = (wire: Wire, id: string | number = 'honest') =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'resources/read', params: withMeta(controlParams(), wire.modern) })

/** Sends bytes as one message. Over HTTP, with the headers of an honest one. */
async function frame(wire: Wire, bytes: string | Uint8Array, headers: Record<string, string> = {}): Promise<Answer> {
  if (isStdio(wire)) {
    await wire.pipe.write(Buffer.concat([Buffer.from(bytes), Buffer.from('\n')]))
    return wire.pipe.next()
  }
  const honest = wire.modern
    ? modernHeaders('resources/read', controlParams())
    : { ...jsonHeaders, ...sessionHeaders(wire) }
  return send(wire.target, arena.world, { headers: { ...honest, ...headers }, body: bytes })
}

function expectParseError(wire: Wire, answer: Answer, what: string): void {
  const shown = `${what}: ${answer.raw.subarray(0, 300)}`
  expect(answer.message, shown).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32700 } })
  expect(answer.raw.length, shown).toBeLessThan(512)
  if (wire.transport === 'http') expect(answer.status, shown).toBe(400)
}

describe('bytes that are not a valid message', () => {
  const kinds = [
    ['are nested too deeply, or consist of one repeated sign,', 'JR02'],
    ['have a member twice', 'JR04'],
    ['are not UTF-8', 'JR11'],
    ['are in another encoding, or begin with a byte order mark,', 'JR12'],
    ['are not JSON', 'JR16'],
  ] as const
  test('are tested below in each kind that the corpus of faulty frames contains', () => {
    expect(new Set(faultyFrames.map(({ id }) => id))).toEqual(new Set(kinds.map(([, id]) => id)))
  })

  describe.each(kinds)('because they %s', (_, id) => {
    test.each(wireNames)(`give a parse error over %s, and the next message is answered (${id})`, async (name) => {
      const wire = arena.wire(name)
      for (const { what, bytes } of faultyFrames.filter((one) => one.id === id)) {
        expectParseError(wire, await frame(wire, bytes(honestOf(wire))), what)
      }
    })
  })

  test.each(['http 2026-07-28', 'http 2025-11-25'] as const)(
    'because they are labelled with another charset than UTF-8 are refused with status 415 over %s (JR12)',
    async (name) => {
      const wire = arena.wire(name)
      for (const charset of [
        'utf-16',
        'utf-16le',
        'utf-7',
        'latin1',
        'us-ascii',
        'utf-8; charset=utf-16',
        'utf-8, x',
      ]) {
        const answer = await frame(wire, honestOf(wire), { 'content-type': `application/json; charset=${charset}` })
        expect(answer.status, charset).toBe(415)
      }
      for (const type of ['application/json; charset=utf-8', 'application/json;charset="UTF-8"', 'Application/JSON'])
        expect((await frame(wire, honestOf(wire), { 'content-type': type })).status, type).toBe(200)
    },
  )

  test.each(stdioNames)(
    'that repeat a bracket or another character up to the size limit give a parse error over %s (JR02)',
    async (name) => {
      const wire = arena.wire(name)
      for (const bracket of ['[', '{"":', '"', '\\', ' ', ',', '{"a":1},']) {
        expectParseError(
          wire,
          await frame(wire, bracket.repeat(Math.floor((4 * 1024 * 1024) / bracket.length) - 1)),
          bracket,
        )
      }
    },
  )

  test.each(stdioNames)(
    'of 10 MB give a parse error over %s, and the server stays below 600 MiB (JR02, JR17)',
    async (name) => {
      const wire = arena.wire(name)
      for (const byte of ['[', 'x', ' ', '\0']) expectParseError(wire, await frame(wire, byte.repeat(10_000_000)), byte)
      expect(wire.target.facts().resident).toBeLessThan(600)
    },
  )

  test.each(['http 2026-07-28', 'http 2025-11-25'] as const)(
    'of 10 MB in a body are refused over %s with 413 or a closed connection (JR02)',
    async (name) => {
      const wire = arena.wire(name)
      const answer = await frame(wire, '['.repeat(10_000_000)).catch((error: NodeJS.ErrnoException) => error.code)
      // The server may close the connection while the client is still sending.
      if (typeof answer === 'string') expect(['EPIPE', 'ECONNRESET']).toContain(answer)
      else expect((answer as Answer).status).toBe(413)
    },
  )

  test.each(wireNames)(
    'do not include a message with 60,000 members, which is answered over %s (JR02)',
    async (name) => {
      const wire = arena.wire(name)
      const members = Array.from({ length: 60_000 }, (_, i) => `"m${i}":0`).join()
      const bytes = honestOf(wire).replace('"params":{', `"params":{"x":{${members}},`)
      if (isStdio(wire)) {
        await wire.pipe.write(`${bytes}\n`)
        expect((await wire.pipe.answerTo('honest')).message?.result).toBeDefined()
      } else expect((await frame(wire, bytes)).message?.result).toBeDefined()
    },
  )
})

describe('lines of stdio:', () => {
  const honest = (wire: StdioWire, id: string) => honestOf(wire, id)

  test.each(stdioNames)(
    'CRLF, empty lines, spaces around a message, a message in single bytes and fifty messages at once are accepted over %s (JR18)',
    async (name) => {
      const wire = arena.wire(name) as StdioWire
      const { pipe } = wire
      await pipe.write(`\r\n\n\n\r\n${honest(wire, 'crlf')}\r\n`)
      expect((await pipe.answerTo('crlf')).message?.result).toBeDefined()
      await pipe.write(`  \t ${honest(wire, 'spaces')} \t \n`)
      expect((await pipe.answerTo('spaces')).message?.result).toBeDefined()
      for (const byte of Buffer.from(`${honest(wire, 'slow')}\n`)) {
        await pipe.write(Uint8Array.of(byte))
        if (byte % 8 === 0) await sleep(2)
      }
      expect((await pipe.answerTo('slow')).message?.result).toBeDefined()
      const all = Array.from({ length: 50 }, (_, i) => honest(wire, `joined${i}`)).join('\n')
      await pipe.write(`${all}\n`)
      for (let i = 0; i < 50; i++) expect((await pipe.answerTo(`joined${i}`)).message?.result).toBeDefined()
    },
  )

  test.each(stdioNames)(
    'a character that is split between two chunks is read correctly over %s (JR18, JR11)',
    async (name) => {
      const wire = arena.wire(name) as StdioWire
      const line = Buffer.from(
        `${JSON.stringify({ jsonrpc: '2.0', id: 'cut', method: 'resources/read', params: withMeta({ uri: `${arena.world.address}/日本語/引き出し.md` }, wire.modern) })}\n`,
      )
      const at = line.indexOf(Buffer.from('引')) + 1
      await wire.pipe.write(line.subarray(0, at))
      await sleep(30)
      await wire.pipe.write(line.subarray(at))
      expect((await wire.pipe.answerTo('cut')).message?.result?.contents).toMatchObject([{ text: 'drawer\n' }])
    },
  )

  test.each(stdioNames)(
    'an invalid line gets an error, and the next line is answered, over %s (JR18, JR21)',
    async (name) => {
      const wire = arena.wire(name) as StdioWire
      const junk = [
        '{',
        '}',
        '\0\0\0',
        '\xff',
        '{"jsonrpc":"2.0","id":1',
        'null',
        'true',
        '0',
        '""',
        '{}',
        ' ',
        '\r',
        '\v',
        '\u0085',
        '\u2028',
      ]
      for (const [index, line] of junk.entries()) {
        await wire.pipe.write(`${line}\n${honest(wire, `after${index}`)}\n`)
        expect((await wire.pipe.answerTo(`after${index}`)).message?.result, JSON.stringify(line)).toBeDefined()
        if (line === '\r') continue
        expect((await wire.pipe.next()).message, JSON.stringify(line)).toMatchObject({
          id: null,
          error: { code: expect.any(Number) },
        })
      }
    },
  )

  test.each(stdioNames)(
    'an answer stays one line if its id has control characters or Unicode line separators, over %s (JR14)',
    async (name) => {
      const wire = arena.wire(name) as StdioWire
      for (const id of [
        'a\u2028b',
        'a\u2029b',
        'a\u0085b',
        'a\nb',
        'a\r\nb',
        'a\0b',
        'a\u001bb',
        'a\u000bb\u000cc\u001cd\u001ee',
      ]) {
        const { message, raw } = await wire.call('resources/read', controlParams(), { id })
        expect(message?.id).toBe(id)
        // biome-ignore lint/suspicious/noControlCharactersInRegex: these end lines for some readers.
        expect(raw.toString().split(/\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/u)).toHaveLength(1)
      }
    },
  )
})

describe('batches of messages:', () => {
  const read = (id: unknown, modern: boolean) =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'resources/read', params: withMeta(controlParams(), modern) })

  test.each(wireNames)('over %s, a batch is refused as a whole if the revision has no batches (JR01)', async (name) => {
    const wire = arena.wire(name)
    const one = read(1, wire.modern)
    for (const batch of [
      '[]',
      `[${one}]`,
      `[[${one}]]`,
      '[1,2]',
      '[null]',
      '[{}]',
      `[${one},${one}]`,
      '[{"jsonrpc":"2.0","method":"notifications/x"}]',
      `[${Array(2000).fill(one).join()}]`,
    ]) {
      const { message, raw, status } = await frame(wire, batch)
      expect(message, raw.toString()).toMatchObject({ id: null, error: { code: -32600 } })
      if (wire.transport === 'http') expect(status).toBe(400)
    }
  })

  test('in a revision with batches, each of up to fifty messages gets its own result or error, and a longer or empty batch is refused (JR01)', async () => {
    const target = await startFixture(arena.world, { transport: 'stdio' })
    for (const wire of [
      await openStdio(target, arena.world, '2025-03-26'),
      await openHttp(arena.http, arena.world, '2025-03-26'),
    ]) {
      const ask = async (batch: string) => (await frame(wire, batch)).message as unknown
      const ids = Array.from({ length: 50 }, (_, i) => i)
      const answers = (await ask(`[${ids.map((id) => read(id, false)).join()}]`)) as readonly {
        readonly id: number
        readonly result: unknown
      }[]
      expect(answers.map(({ id }) => id).sort((a, b) => a - b)).toEqual(ids)
      for (const { result } of answers) expect(result).toBeDefined()
      expect(await ask(`[${Array.from({ length: 51 }, (_, id) => read(id, false)).join()}]`)).toMatchObject({
        id: null,
        error: { code: -32600 },
      })
      expect(await ask('[]')).toMatchObject({ id: null, error: { code: -32600 } })
      const mixed = (await ask(
        `[${read('a', false)},1,[],{"jsonrpc":"2.0","method":"notifications/x"},[${read('nested', false)}],${read('a', false)},{"jsonrpc":"2.0","id":"u","method":"resources/read","params":{"uri":"${arena.world.address}/.env"}}]`,
      )) as readonly { readonly id: unknown; readonly result?: unknown; readonly error?: { readonly code: number } }[]
      expect(mixed.filter(({ id }) => id === null).map(({ error }) => error?.code)).toEqual([-32600, -32600, -32600])
      expect(
        mixed
          .filter(({ id }) => id === 'a')
          .map(({ error }) => error?.code)
          .sort(),
      ).toEqual([-32600, undefined])
      expect(mixed.find(({ id }) => id === 'u')).toMatchObject({ error: { code: -32002 } })
      expect(mixed).toHaveLength(6)
      await wire.close()
    }
  })

  test('a batch cannot open a session, nor use revision 2026-07-28 (JR01)', async () => {
    const body = `[{"jsonrpc":"2.0","id":1,"method":"initialize","params":${JSON.stringify({ protocolVersion: legacy, capabilities: {}, clientInfo: { name: 'x', version: '1' } })}}]`
    expect((await send(arena.http, arena.world, { headers: jsonHeaders, body })).status).toBe(400)
    const modernBatch = `[${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/list', params: { _meta: meta } })}]`
    expect((await send(arena.http, arena.world, { headers: jsonHeaders, body: modernBatch })).status).toBe(400)
  })
})
