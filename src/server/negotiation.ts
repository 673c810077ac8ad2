import type { IncomingMessage } from 'node:http'
import { valuesOf } from './guard.ts'

/** Returns why a body is refused: only unencoded JSON in UTF-8 is accepted. Forms and plain text, which any web page may send, are refused. */
export function mediaFault(request: IncomingMessage): string | undefined {
  const types = valuesOf(request, 'content-type')
  const [type = ''] = types
  if (types.length !== 1 || !/^application\/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i.test(type))
    return 'The Content-Type is not application/json in UTF-8.'
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') return 'A Content-Encoding is not supported.'
  return undefined
}

/** Whether the client accepts one of the two forms of an answer. Without a header it accepts both. */
export function accepts(request: IncomingMessage): boolean {
  const accept = request.headers.accept
  if (accept === undefined) return true
  if (accept === lastAccepted) return true
  const isAccepted = accept.split(',').some((range) => {
    const [type = '', ...params] = range.split(';').map((part) => part.trim().toLowerCase())
    const refused = params.some((param) => /^q=0(?:\.0*)?$/.test(param))
    return !refused && /^(?:\*\/\*|application\/(?:json|\*)|text\/(?:event-stream|\*))$/.test(type)
  })
  if (isAccepted) lastAccepted = accept
  return isAccepted
}

/** The last header that was found acceptable: most clients send the same, and to judge it takes 2 µs. */
let lastAccepted: string | undefined
