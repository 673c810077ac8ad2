import { once } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { withResolvers } from '../../src/core/kit/abort.ts'
import type { Provider } from '../../src/core/provider.ts'
import { sendConsoleTo } from '../../src/server/stdio/console.ts'
import { createStreamWriter, readLines } from '../../src/server/stdio/lines.ts'
import { serveStdio } from '../../src/server/stdio/serve-stdio.ts'
import { memory } from '../support/memory.ts'
import { bytesSoFar } from '../support/stream-bytes.ts'

const never = new AbortController().signal

async function linesOf(chunks: readonly (string | Buffer)[], limit = 100) {
  const lines: string[] = []
  for await (const read of readLines(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), limit, never))
    lines.push(...read.map((line) => (line === 'too-long' ? '<too long>' : Buffer.from(line).toString())))
  return lines
}

describe('the console of a stdio server', () => {
  const printed = () => {
    const stream = new PassThrough()
    return {
      restore: sendConsoleTo(() => stream as unknown as typeof process.stderr),
      text: () => bytesSoFar(stream).toString(),
    }
  }

  test('is redirected to a stream until it is restored', () => {
    const before = globalThis.console
    const unused = printed()
    unused.restore()
    expect(globalThis.console).toBe(before)
    const used = printed()
    globalThis.console.log('while it serves')
    used.restore()
    expect(used.text()).toBe('while it serves\n')
    expect(globalThis.console).toBe(before)
  })

  test('is not restored if a library has replaced it meanwhile', () => {
    const before = globalThis.console
    const { restore } = printed()
    const own = { ...before }
    try {
      globalThis.console = own
      restore()
      expect(globalThis.console).toBe(own)
    } finally {
      globalThis.console = before
    }
  })
})

describe('lines of stdio', () => {
  test('are found across chunks, with LF or CRLF, also the last one without an end, and empty ones are skipped', async () => {
    expect(await linesOf(['a\nb', 'c\r', '\n\n\r\n', 'd'])).toEqual(['a', 'bc', 'd'])
    expect(await linesOf([...'{"a":1}\n{"b":2}\n'])).toEqual(['{"a":1}', '{"b":2}'])
  })

  test('keep characters that are split between chunks', async () => {
    const bytes = Buffer.from('日本\n')
    expect(await linesOf([...bytes].map((byte) => Buffer.from([byte])))).toEqual(['日本'])
  })

  test('that are too long are discarded, and the next one is read', async () => {
    expect(await linesOf(['x'.repeat(101), '\nok\n'])).toEqual(['<too long>', 'ok'])
    expect(await linesOf(['x'.repeat(60), 'x'.repeat(60), 'x'.repeat(60), '\nok\n', 'y'.repeat(200)])).toEqual([
      '<too long>',
      'ok',
      '<too long>',
    ])
    expect(await linesOf(['x'.repeat(100), '\n'])).toEqual(['x'.repeat(100)])
  })

  test('end with the signal, also without input', async () => {
    const controller = new AbortController()
    const reading = (async () => {
      for await (const _ of readLines(new PassThrough(), 100, controller.signal));
    })()
    controller.abort()
    await reading
  })
})

describe('the writer of stdio', () => {
  test('writes in order and waits for a slow reader', async () => {
    const output = new PassThrough({ highWaterMark: 10 })
    const writer = createStreamWriter(output)
    let made = 0
    const written = Array.from({ length: 20 }, (_, i) =>
      writer.write(() => {
        made++
        return `${i}:${'x'.repeat(20)}\n`
      }),
    )
    await new Promise((resolve) => setImmediate(resolve))
    expect(made).toBe(1)
    let text = ''
    output.on('data', (chunk) => {
      text += chunk
    })
    await Promise.all(written)
    await writer.end()
    expect(text.split('\n').map((line) => line.split(':')[0])).toEqual([
      ...Array.from({ length: 20 }, (_, i) => `${i}`),
      '',
    ])
  })

  test('reports that the reader has closed, and does not hang', async () => {
    const output = new PassThrough({ highWaterMark: 1 })
    const writer = createStreamWriter(output)
    const stuck = writer.write(() => 'xxxx')
    output.destroy(new Error('EPIPE'))
    await expect(stuck).rejects.toThrow('gone')
    await writer.failed
    await expect(writer.write(() => 'more')).rejects.toThrow('gone')
    await writer.end()
  })
})

interface Answer {
  readonly id: unknown
  readonly result?: Record<string, unknown>
  readonly error?: { code: number; message: string; data?: Record<string, unknown> }
}

/** Serves a provider over a pair of pipes; sends what it is given, ends the input, and gives what came back. */
async function converse(provider: Provider, messages: readonly unknown[], wait = true): Promise<(Answer | Answer[])[]> {
  const input = new PassThrough()
  const output = new PassThrough()
  let text = ''
  output.on('data', (chunk) => {
    text += chunk
  })
  const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider }] })
  const served = serveStdio({
    view: (p) => catalog.view(p),
    name: 't',
    version: '1',
    log: () => {},
    input,
    output,
    grace: 500,
  })
  for (const message of messages) {
    const before = text.length
    input.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
    const answers =
      Array.isArray(message) || typeof message === 'string' || (message as { id?: unknown }).id !== undefined
    for (let i = 0; wait && answers && i < 200 && text.length === before; i++)
      await new Promise((r) => setTimeout(r, 5))
  }
  input.end()
  await served
  return text
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Answer | Answer[])
}

const initialize = (version: string) => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: version, capabilities: {}, clientInfo: { name: 'c', version: '1' } },
})
const request = (id: unknown, method: string, params?: unknown) => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params ? { params } : {}),
})
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
const slow = (ms: number): Provider => ({
  ...memory({ a: 'a' }),
  read: async (_, { signal }) => {
    await new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, ms)
      signal.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(new Error('aborted'))
      })
    })
    return [{ text: 'slow' }]
  },
})

describe('a server over stdio', () => {
  test.each(['2024-10-07', '2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])(
    'negotiates the revision %s',
    async (version) => {
      const [answer] = await converse(memory({ a: 'a' }), [initialize(version)])
      expect(answer).toMatchObject({ id: 0, result: { protocolVersion: version, capabilities: { resources: {} } } })
      const capabilities = ((answer as Answer).result?.capabilities ?? {}) as object
      expect('completions' in capabilities).toBe(version >= '2025-03-26')
      expect(JSON.stringify(capabilities)).not.toMatch(/subscribe|listChanged/)
    },
  )

  test('gives a client of revision 2024-10-07 the templates in the list of resources', async () => {
    const answers = await converse(memory({ a: 'a' }), [initialize('2024-10-07'), request(1, 'resources/list')])
    expect(answers[1]).toMatchObject({ result: { resources: [{ name: 'a' }], resourceTemplates: [{ name: 'All' }] } })
  })

  test('answers each message by the rules of its own revision, whatever came before', async () => {
    const read = (id: number, modern: boolean) =>
      request(id, 'resources/read', { uri: 'file:///r/x', ...(modern ? { _meta: meta } : {}) })
    const answers = await converse(memory({ a: 'a' }), [
      read(1, true),
      initialize('2025-11-25'),
      read(2, false),
      read(3, true),
    ])
    const codes = new Map(answers.flat().map((answer) => [answer.id, answer.error?.code]))
    expect([codes.get(1), codes.get(2), codes.get(3)]).toEqual([-32602, -32002, -32602])
  })

  test('answers a request with members of null as if they were absent', async () => {
    const nulls = { params: null, result: null, error: null }
    const answers = await converse(memory({ a: 'a' }), [
      initialize('2025-11-25'),
      { jsonrpc: '2.0', id: 1, method: 'ping', ...nulls },
      { jsonrpc: '2.0', id: 2, method: 'resources/list', ...nulls, params: null },
      { jsonrpc: '2.0', id: 3, method: 'tools/list', params: null },
      request(4, 'resources/list', { cursor: null, _meta: null }),
      request(5, 'prompts/list', { cursor: null, _meta: { progressToken: null } }),
    ])
    const found = new Map(answers.flat().map((answer) => [answer.id, answer]))
    expect(found.get(1)).toMatchObject({ result: {} })
    expect(found.get(2)).toMatchObject({ result: { resources: [{ name: 'a' }] } })
    expect(found.get(3)).toMatchObject({ result: { tools: [] } })
    expect(found.get(4)).toMatchObject({ result: { resources: [{ name: 'a' }] } })
    expect(found.get(5)).toMatchObject({ result: { prompts: [] } })
  })

  test('never answers a notification, however malformed', async () => {
    const malformed = [
      { method: 'notifications/initialized', params: [] },
      { method: 'notifications/initialized', params: 'x' },
      { method: 'notifications/initialized', params: { _meta: 7 } },
      { method: 'notifications/initialized', result: {} },
      { method: 'notifications/initialized', error: { code: 1, message: 'x' } },
      { method: 'notifications/initialized', jsonrpc: '1.0' },
      { method: 'notifications/initialized', jsonrpc: undefined },
      { method: 'notifications/initialized', id: null },
      { method: 'notifications/initialized', params: null },
      { method: 'resources/read', params: 1 },
      { method: 'x'.repeat(2000) },
      { method: '' },
    ].map((message) => ({ jsonrpc: '2.0', ...message }))
    const answers = await converse(memory({}), [
      initialize('2025-03-26'),
      ...malformed.map((message) => JSON.stringify(message)).map((line) => JSON.parse(line) as unknown),
      malformed,
      request(9, 'ping'),
    ])
    expect(answers.flat().map(({ id }) => id)).toEqual([0, 9])
  })

  test('answers batches in revision 2025-03-26, and refuses them in a later revision', async () => {
    const batch = [
      request(1, 'ping'),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      request('2', 'resources/list'),
      7,
    ]
    const [, answers] = await converse(memory({ a: 'a' }), [initialize('2025-03-26'), batch])
    // In any order (JSON-RPC 2.0, section 6): what is at fault is known first.
    expect([answers].flat().sort((a, b) => String(a?.id).localeCompare(String(b?.id)))).toMatchObject([
      { id: 1, result: {} },
      { id: '2', result: { resources: [{ name: 'a' }] } },
      { id: null, error: { code: -32600 } },
    ])
    for (const faulty of [[], Array.from({ length: 51 }, (_, i) => request(i, 'ping')), [[request(1, 'ping')]]]) {
      const [, answer] = await converse(memory({}), [initialize('2025-03-26'), faulty])
      expect([answer].flat()[0]).toMatchObject({ error: { code: -32600 } })
    }
    const [, refused] = await converse(memory({}), [initialize('2025-06-18'), batch])
    expect(refused).toMatchObject({ id: null, error: { code: -32600 } })
  })

  test('reports an error for an unreadable message, and continues', async () => {
    const answers = await converse(memory({}), ['{oops', initialize('2025-11-25'), '\ufeff{}', request(1, 'ping')])
    expect(answers).toMatchObject([
      { id: null, error: { code: -32700 } },
      { id: 0 },
      { id: null, error: { code: -32700 } },
      { id: 1, result: {} },
    ])
  })

  test('distinguishes the ids 1 and "1", and refuses an id that is in flight', async () => {
    const read = (id: unknown) => request(id, 'resources/read', { uri: 'file:///r/a' })
    const answers = (await converse(slow(100), [initialize('2025-11-25'), read(1), read('1'), read(1)], false)).flat()
    expect(answers.filter((answer) => answer.error?.code === -32600)).toMatchObject([{ id: 1 }])
    expect(answers.filter((answer) => answer.result?.contents)).toHaveLength(2)
  })

  test('answers pending requests when the input ends, and gives up hanging ones', async () => {
    const read = request(1, 'resources/read', { uri: 'file:///r/a' })
    expect(await converse(slow(100), [read], false)).toMatchObject([{ id: 1, result: {} }])
    expect(await converse(slow(60_000), [read], false)).toEqual([])
  })

  test('answers all pending requests when the input ends, as long as answers come', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const releases: (() => void)[] = []
    const { promise: begun, resolve: tellBegun } = withResolvers<void>()
    const provider: Provider = {
      ...memory({ 1: 'a', 2: 'a', 3: 'a', 4: 'a' }),
      read: async (_, { signal }) => {
        await new Promise<void>((resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
          if (releases.push(resolve) === 4) tellBegun()
        })
        return [{ text: 'slow' }]
      },
    }
    const input = new PassThrough()
    const output = new PassThrough()
    const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider }] })
    const served = serveStdio({
      view: catalog.view,
      name: 't',
      version: '1',
      log: () => {},
      input,
      output,
      grace: 4000,
    })
    const reads = [1, 2, 3, 4].map((id) => JSON.stringify(request(id, 'resources/read', { uri: `file:///r/${id}` })))
    input.end(`${reads.join('\n')}\n`)
    const answers: string[] = []
    output.on('data', (line) => answers.push(String(line)))
    const turn = () => new Promise(setImmediate)
    await begun
    for (const [i, release] of releases.slice(0, 3).entries()) {
      vi.advanceTimersByTime(3000)
      release()
      while (answers.length === i) await turn()
      await turn()
    }
    vi.advanceTimersByTime(4000)
    await served
    expect(answers.map((answer) => JSON.parse(answer))).toMatchObject([1, 2, 3].map((id) => ({ id, result: {} })))
  })

  test('does not answer a cancelled request', async () => {
    const cancel = (requestId: unknown) => ({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId },
    })
    const read = (id: unknown) => request(id, 'resources/read', { uri: 'file:///r/a' })
    const answers = await converse(
      slow(150),
      [read(1), read(2), cancel(1), cancel('2'), cancel(99), cancel(null)],
      false,
    )
    expect(answers.flat().map((answer) => answer.id)).toEqual([2])
  })

  test('sends progress with increasing numbers, if the request has a token', async () => {
    const read = request(1, 'resources/read', { uri: 'file:///r/a', _meta: { progressToken: 'p' } })
    const input = new PassThrough()
    const output = new PassThrough()
    let text = ''
    output.on('data', (chunk) => {
      text += chunk
    })
    const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider: slow(2300) }] })
    const served = serveStdio({ view: (p) => catalog.view(p), name: 't', version: '1', log: () => {}, input, output })
    input.end(`${JSON.stringify(read)}\n`)
    await served
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { method?: string; params?: unknown; id?: unknown })
    expect(lines.map((line) => line.params ?? line.id)).toEqual([
      { progressToken: 'p', progress: 1 },
      { progressToken: 'p', progress: 2 },
      1,
    ])
  })

  test('refuses an answer over 10 MiB, with advice to read a part', async () => {
    const big = memory({ big: { bytes: new Uint8Array(9 * 1024 * 1024) } })
    const [answer] = await converse(big, [request(1, 'resources/read', { uri: 'file:///r/big' })])
    expect(answer).toMatchObject({ id: 1, error: { code: -32602, data: { reason: 'too-large' } } })
    expect((answer as Answer).error?.message).toContain('lines=1-1000')
  })

  test('discloses nothing of an error that a provider throws', async () => {
    const broken: Provider = {
      ...memory({}),
      read: async () => {
        throw Object.assign(new Error('password=hunter2 at /etc/secret'), { code: -32001, data: { secret: 'hunter2' } })
      },
      async *list() {
        yield* []
        throw 'hunter2'
      },
    }
    const answers = await converse(broken, [
      request(1, 'resources/read', { uri: 'file:///r/a' }),
      request(2, 'resources/list'),
      request(3, 'resources/read', { uri: 'file:///r/a', _meta: meta }),
    ])
    expect(JSON.stringify(answers)).not.toContain('hunter2')
    expect(answers.flat().map((answer) => answer.error)).toEqual(
      Array(3).fill({ code: -32603, message: 'Internal error' }),
    )
  })
})

test('a client is answered as soon as its view, which failed before, can be created', async () => {
  const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider: memory({ a: 'x' }) }] })
  const [input, output] = [new PassThrough(), new PassThrough()]
  let calls = 0
  const served = serveStdio({
    ...{ name: 't', version: '1', log: () => {}, input, output },
    view: (principal) => {
      if (++calls === 1) throw new Error('not ready')
      return catalog.view(principal)
    },
  })
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
  const initialize = async (id: number) => {
    input.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'initialize', params })}\n`)
    const [line] = await once(output, 'data')
    return JSON.parse(String(line))
  }
  expect(await initialize(1)).toMatchObject({ id: 1, error: { code: -32603 } })
  expect(await initialize(2)).toMatchObject({ id: 2, result: { serverInfo: { name: 't' } } })
  input.end()
  await served
})
