import type { Readable, Writable } from 'node:stream'
import { createAutoResetEvent } from '../../core/kit/abort.ts'
import { requireKeys } from '../../core/kit/object.ts'
import { createGate } from '../admission/gate.ts'
import { JsonError, parseJson } from '../messages/json.ts'
import { errorAnswer, formatMessage, isObject, wireErrorCodes } from '../messages/messages.ts'
import { createConnection, type ReceiveOptions } from '../protocol/connection.ts'
import { localPrincipal, openViewChannel, type ServeOptions } from '../serve.ts'
import { sendConsoleTo } from './console.ts'
import { createStreamWriter, readLines, resumedMethod } from './lines.ts'

export interface StdioOptions extends ServeOptions {
  readonly input?: Readable
  readonly output?: Writable
  /** Ends the service when it aborts: requests in flight are still answered, within the grace period. */
  readonly signal?: AbortSignal
  /** Maximum length of a message, in bytes. Default 4 MiB. */
  readonly maxInput?: number
  /**
   * After the input has ended, requests in flight are cancelled when this time has passed without an answer, in milliseconds. Default
   * 4000.
   */
  readonly grace?: number
  /** Called once, after the first answer is written. */
  readonly onFirstAnswer?: () => void
}

/** Maximum size of a message, in bytes: the official TypeScript clients close the connection at a longer one. */
const maxOutputBytes = 10 * 1024 * 1024
/** Maximum number of requests that run at once. */
const maxConcurrent = 16
/** Maximum number of further requests that are read before the client has to wait. */
const maxWaiting = 1000

/**
 * Serves one client over a pair of pipes, one JSON message per line. Ends after the input has ended and the requests are answered. While it
 * writes to stdout of the process, the console writes to stderr.
 */
export async function serveStdio(options: StdioOptions): Promise<void> {
  requireKeys('serveStdio({ name, version, view, log })', options, {
    name: 'a string',
    version: 'a string',
    view: 'a function',
    log: 'a function',
  })
  if (options.output !== undefined) return serveClient(options)
  const restoreConsole = sendConsoleTo(() => process.stderr)
  try {
    await serveClient(options)
  } finally {
    restoreConsole()
  }
}

async function serveClient(options: StdioOptions): Promise<void> {
  const input = options.input ?? process.stdin
  const writer = createStreamWriter(options.output ?? process.stdout)
  const stop = new AbortController()
  let { onFirstAnswer } = options
  const tellFirst = () => {
    if (onFirstAnswer !== undefined) setImmediate(onFirstAnswer)
    onFirstAnswer = undefined
  }
  const write = async (message: object) => {
    await writer.write(() => `${formatMessage(message, maxOutputBytes)}\n`)
    tellFirst()
  }
  const connection = createConnection(
    // A client that would miss notifications learns it from the end of the pipe.
    (era) => openViewChannel(options, options.principal ?? localPrincipal, era, { write, onLost: () => stop.abort() }),
    createGate(maxConcurrent, Number.POSITIVE_INFINITY),
    options,
  )
  const answering = new Set<Promise<void>>()
  const news = createAutoResetEvent()
  let grace: NodeJS.Timeout | undefined
  stop.signal.addEventListener('abort', news.set)

  const receiving: ReceiveOptions = {
    onNotification: (message) => void write({ ...message }).catch(() => {}),
    deliver: write,
    write,
  }
  const answer = async (line: Uint8Array): Promise<void> => {
    let value: unknown
    try {
      value = parseJson(line)
    } catch (error) {
      const message = error instanceof JsonError ? error.message : 'The message could not be read.'
      return write(errorAnswer(null, { code: wireErrorCodes.parse, message }))
    }
    if (isObject(value) && value.method === resumedMethod) {
      await Promise.allSettled([...answering])
      return connection.retell()
    }
    const response = await connection.receive(value, receiving)
    if (response !== undefined) await write(response)
  }
  const begin = (line: Uint8Array): void => {
    const answered = answer(line).catch((error) => options.log('debug', 'an answer could not be written', { error }))
    answering.add(answered)
    void answered.then(() => {
      answering.delete(answered)
      grace?.refresh()
      news.set()
    })
  }

  const signals = options.signal === undefined ? [stop.signal] : [stop.signal, options.signal]
  writer.failed.then(() => stop.abort())
  const maxInput = options.maxInput ?? 4 * 1024 * 1024
  for await (const lines of readLines(input, maxInput, AbortSignal.any(signals))) {
    for (const line of lines) {
      if (line === 'too-long') {
        const message = `The message is longer than ${maxInput} bytes.`
        await write(errorAnswer(null, { code: wireErrorCodes.parse, message })).catch(() => {})
        continue
      }
      begin(line)
      // A client that sends faster than it reads is not read, so the pipe fills, and the client waits.
      while (answering.size - connection.listening > maxWaiting && !stop.signal.aborted) await news.wait()
    }
  }
  connection.drain()
  // A hanging request, or a client that does not read, does not keep the process alive.
  const graceMs = options.grace ?? 4000
  grace = setTimeout(() => void connection.close(), graceMs)
  writer.hurry(graceMs)
  if (stop.signal.aborted) await connection.close()
  await Promise.allSettled(answering)
  clearTimeout(grace)
  await connection.close()
  await writer.end()
}
