import { randomBytes } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { writeStreamed } from '../../src/server/exchange.ts'
import { blobStreamOf } from '../../src/server/messages/json.ts'

/** Sends bytes in pieces of some sizes, and returns the body of the answer. */
async function sent(bytes: Buffer, sizes: readonly number[]): Promise<string> {
  const pieces = async function* () {
    let at = 0
    for (const size of sizes) {
      yield bytes.subarray(at, at + size)
      at += size
    }
    yield bytes.subarray(at)
  }
  const blob = blobStreamOf({ stream: pieces(), length: bytes.length })
  const write = (response: ServerResponse) =>
    writeStreamed(response, { head: '{"blob":"', blob, tail: '"}' }, {}, 1e9, () => response.destroy())
  const server = createServer((_, response) => void write(response)).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  try {
    return await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)).text()
  } finally {
    server.close()
  }
}

test.each([
  ['no piece', 0, []],
  ['one byte', 1, []],
  ['single bytes', 8, [1, 1, 1, 1, 1, 1, 1]],
  ['empty pieces between', 7, [0, 2, 0, 0, 1, 0]],
  ['each remainder of three', 40, [3, 1, 3, 2, 4, 5, 7, 1, 2, 2]],
  ['pieces around the size of a group', 400_000, [48 * 1024, 48 * 1024 + 1, 1, 48 * 1024 - 1, 96 * 1024 + 2]],
])('the base64 of a streamed content does not depend on its chunks: %s', async (_, length, sizes) => {
  const bytes = randomBytes(length)
  expect((await sent(bytes, sizes)) === `{"blob":"${bytes.toString('base64')}"}`).toBe(true)
})

test('a content that is longer than the limit is refused, and its source is released', async () => {
  let isReleased = false
  const stream: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({
      next: async () => ({ done: true, value: undefined }),
      return: async () => {
        isReleased = true
        return { done: true, value: undefined }
      },
    }),
  }
  const blob = blobStreamOf({ stream, length: 1000 })
  const refusals: string[] = []
  const response = {} as ServerResponse
  await writeStreamed(response, { head: '', blob, tail: '' }, {}, 100, ({ message }) => refusals.push(message))
  expect(refusals).toEqual([expect.stringContaining('larger than 100 bytes')])
  expect(isReleased).toBe(true)
})
