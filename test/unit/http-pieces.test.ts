import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { useHttp } from '../support/http-service.ts'
import { memory } from '../support/memory.ts'

const serve = useHttp()
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'pieces', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Texts around the length up to which headers and body are written as one piece, in one, two and four bytes a character. */
const texts: Readonly<Record<string, string>> = Object.fromEntries(
  [0, 1, 7000, 7800, 8192, 9000, 20_000].flatMap((length) =>
    ['a', 'é', '漢', '\u2028', '🙂'].map((character, at) => [`${length}-${at}.txt`, character.repeat(length)]),
  ),
)

async function started() {
  const catalog = createCatalog({ mounts: [{ address: 'x://a', provider: memory(texts) }] })
  const { url } = await serve({ view: (principal) => catalog.view(principal) })
  return Number(/:(\d+)\//.exec(url)?.[1])
}

/** Sends the pieces, each after the server has had time for the last, and returns every byte of the answer but the time in it. */
async function send(port: number, pieces: readonly (string | Buffer)[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).setNoDelay(true)
  const closed = once(socket, 'close')
  await once(socket, 'connect')
  for (const piece of pieces) {
    socket.write(piece)
    // The server is in this process: it reads what is there in one of the next turns.
    for (let turns = 0; turns < 5; turns++) await turn()
  }
  await closed
  return Buffer.concat(chunks)
    .toString('latin1')
    .replace(/\r\nDate: [^\r]*/, '')
}

function headOf(port: number, uri: string, body: Buffer, others: string): string {
  const lines = [
    ...['POST /mcp HTTP/1.1', `Host: 127.0.0.1:${port}`, 'Content-Type: application/json', 'Connection: close'],
    ...['MCP-Protocol-Version: 2026-07-28', 'Mcp-Method: resources/read', `Mcp-Name: ${uri}`, others],
  ]
  return `${lines.join('\r\n').replace('{length}', String(body.length))}\r\n\r\n`
}

function bodyOf(uri: string): Buffer {
  const message = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri, _meta: meta } }
  return Buffer.from(JSON.stringify(message))
}

test('a request is answered with the same bytes, whether it comes at once or in pieces', async () => {
  const port = await started()
  for (const [name, text] of Object.entries(texts)) {
    const uri = `x://a/${name}`
    const body = bodyOf(uri)
    const head = headOf(port, uri, body, 'Content-Length: {length}')
    const atOnce = await send(port, [Buffer.concat([Buffer.from(head), body])])
    expect(await send(port, [head, body.subarray(0, 50), body.subarray(50)]), name).toBe(atOnce)
    const [, length, answered = ''] = /\r\nContent-Length: (\d+)\r\n.*?\r\n\r\n(.*)$/s.exec(atOnce) ?? []
    expect(answered.length, name).toBe(Number(length))
    const { result } = JSON.parse(Buffer.from(answered, 'latin1').toString())
    expect(result.contents[0].text, name).toBe(text)
  }
})

test('a chunked body gets the same answer as a body with a Content-Length, whether it comes at once or in pieces', async () => {
  const port = await started()
  const uri = 'x://a/1-0.txt'
  const body = bodyOf(uri)
  const known = await send(port, [
    Buffer.concat([Buffer.from(headOf(port, uri, body, 'Content-Length: {length}')), body]),
  ])
  const head = headOf(port, uri, body, 'Transfer-Encoding: chunked')
  const chunk = (part: Buffer) => `${part.length.toString(16)}\r\n${part.toString()}\r\n`
  const chunks = `${chunk(body.subarray(0, 9))}${chunk(body.subarray(9))}0\r\n\r\n`
  expect(await send(port, [head + chunks])).toBe(known)
  expect(await send(port, [head, chunks])).toBe(known)
})

test.each(['Content-Length: {length}', 'Transfer-Encoding: chunked'])(
  'a body of 70 kB that comes at once gets the same answer as a short body (%s)',
  async (told) => {
    const port = await started()
    const uri = 'x://a/1-0.txt'
    const short = bodyOf(uri)
    const long = Buffer.concat([short, Buffer.alloc(70_000, ' ')])
    const isChunked = told.startsWith('Transfer')
    const pieces = isChunked ? [`${long.length.toString(16)}\r\n`, long, '\r\n0\r\n\r\n'] : [long]
    const whole = Buffer.concat([headOf(port, uri, long, told), ...pieces].map((piece) => Buffer.from(piece)))
    const known = Buffer.concat([Buffer.from(headOf(port, uri, short, 'Content-Length: {length}')), short])
    expect(await send(port, [whole])).toBe(await send(port, [known]))
  },
)
