import type { Writable } from 'node:stream'

/** Where the data of a command goes. */
export interface Output {
  /** Whether a person is looking at it, rather than a program. */
  readonly isTerminal: boolean
  /** Waits while the reader is slow. Rejects with {@link outputClosed} when the reader is gone. */
  write(data: string | Uint8Array): Promise<void>
}

/** The reader of the output is gone (`| head`): the command ends, and nothing is wrong. */
export const outputClosed = new Error('the reader of the output is gone')

export function createOutput(stream: Writable & { readonly isTTY?: boolean }): Output {
  let failure: Error | undefined
  // A listener has to stay: without it, a late failure would end the process.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    failure ??= reasonOf(error)
  })
  return {
    isTerminal: stream.isTTY === true,
    write: (data) =>
      new Promise((resolve, reject) => {
        if (failure !== undefined) return reject(failure)
        stream.write(data, (error) => (error ? reject(reasonOf(error)) : resolve()))
      }),
  }
}

function reasonOf(error: NodeJS.ErrnoException): Error {
  const gone = error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED' || error.code === 'ECONNRESET'
  return gone ? outputClosed : error
}
