import { PassThrough, Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { explainError } from '../../src/cli/terminal/exit.ts'
import { createOutput, outputClosedError } from '../../src/cli/terminal/io.ts'
import { coloursFor } from '../../src/cli/terminal/text.ts'
import { bytesSoFar } from '../support/stream-bytes.ts'

/** An output, and all that was written to what is behind it. */
function output(isTTY: boolean) {
  const stream = Object.assign(new PassThrough(), { isTTY })
  return { out: createOutput(stream), written: () => bytesSoFar(stream) }
}

const hostile = 'a\u001b]0;t\u0007b\u001b[1mc\u009b31md\u202ee\rf\n\tg\r\n'

describe('output to a terminal', () => {
  test('shows control characters in a visible form', async () => {
    const { out, written } = output(true)
    await out.write(hostile)
    expect(written().toString()).toBe('a\\u001b]0;t\\u0007b\\u001b[1mc\\u009b31md\\u202ee\\rf\n\tg\r\n')
  })

  test('is escaped in bytes too, and a character that is split between two chunks is kept', async () => {
    const { out, written } = output(true)
    const bytes = Buffer.from('\u001b[2J引き出し\u009b')
    for (const byte of bytes) await out.write(Uint8Array.of(byte))
    expect(written().toString()).toBe('\\u001b[2J引き出し\\u009b')
  })

  test('keeps the colour sequences of hikidashi, and escapes every other sequence', async () => {
    const { out, written } = output(true)
    const { bold, mark } = coloursFor(true, { FORCE_COLOR: '1' })
    await out.write(`${bold('x')}${mark('y')}\u001b[2J\u001b[1;2;3m\u001b]0;t\u0007`, { isStyled: true })
    expect(written().toString()).toBe(
      '\u001b[1mx\u001b[22m\u001b[1;33my\u001b[22;39m\\u001b[2J\\u001b[1;2;3m\\u001b]0;t\\u0007',
    )
  })
})

test('output to a pipe is unchanged, for texts and bytes', async () => {
  const { out, written } = output(false)
  await out.write(hostile)
  await out.write(Uint8Array.of(0, 27, 155, 255))
  expect(written()).toEqual(Buffer.concat([Buffer.from(hostile), Buffer.of(0, 27, 155, 255)]))
})

test.each([
  ['EPIPE', 'write EPIPE', undefined],
  ['ENOSPC', 'ENOSPC: no space left on device, write', 'The output cannot be written: ENOSPC: no space left on device'],
])('an output that fails with %s is not reported as a fault of hikidashi', async (code, message, told) => {
  const failing = new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error(message), { code })),
  })
  const failure: unknown = await createOutput(failing)
    .write('x')
    .catch((error: unknown) => error)
  if (told === undefined) expect(failure).toBe(outputClosedError)
  else expect(explainError(failure)).toEqual({ message: told, exitCode: 1 })
})
