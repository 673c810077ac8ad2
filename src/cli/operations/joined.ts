import type { Socket } from 'node:net'
import type { OpenedCatalog } from '../../config/build.ts'
import { type BriefOptions, briefFor, disabledBrief } from '../../context/brief.ts'
import { createMemory, type Memory } from '../../context/memory.ts'
import { defined, isObject, jsonIn } from '../../core/kit/object.ts'
import type { PendingOpen } from '../../core/opening.ts'
import { localPrincipal } from '../../server/serve.ts'
import { type StdioOptions, serveStdio } from '../../server/stdio/serve-stdio.ts'
import type { Secrets } from '../terminal/secrets.ts'
import { cleanView } from './clean-view.ts'

/** The question of a hook. A running server gets it as one line of JSON. */
export interface BriefRequest extends Pick<BriefOptions, 'prompt' | 'budget' | 'minScore'> {
  readonly hikidashi: 'brief'
}

interface Joinable {
  readonly opening: PendingOpen<OpenedCatalog>
  readonly secrets: Secrets
  /** Whether hooks are answered. Default true. */
  readonly hook?: boolean | undefined
}

/** Maximum size of the first message of a client, in bytes, and the time for it in milliseconds. */
const first = { maxBytes: 4 * 1024 * 1024, timeoutMs: 10_000 }

let memory: Memory | undefined

/** Serves a client of another process: a host as over stdio, or a hook with one question. */
export async function serveOtherProcess(
  socket: Socket,
  service: StdioOptions,
  { opening, secrets, hook = true }: Joinable,
): Promise<void> {
  const line = await firstLine(socket)
  const request = line?.startsWith('{"hikidashi"') ? jsonIn(line) : undefined
  if (isObject(request) && typeof request.prompt === 'string') {
    if (!hook) return void socket.end(`${JSON.stringify(disabledBrief)}\n`)
    const answer = await opening
      .whenOpen()
      .then((catalog) => {
        memory ??= createMemory()('hook')
        const view = cleanView(catalog.view(service.principal ?? localPrincipal), secrets)
        const { prompt, budget, minScore } = request as unknown as BriefRequest
        return briefFor(view, { prompt, now: Date.now(), memory, ...defined({ budget, minScore }) })
      })
      .catch((error: unknown) => ({ silence: error instanceof Error ? error.message : 'unknown' }))
    socket.end(`${JSON.stringify(answer)}\n`)
    return
  }
  await serveStdio({ ...service, input: socket, output: socket })
  socket.end()
}

/** Resolves to the first line of a socket; undefined if it does not come in time. The bytes that were read are put back. */
function firstLine(socket: Socket): Promise<string | undefined> {
  return new Promise((done) => {
    const chunks: Buffer[] = []
    let size = 0
    const end = (line: string | undefined) => {
      clearTimeout(timer)
      socket.off('data', look).off('end', over).pause()
      if (size > 0 && !socket.readableEnded) socket.unshift(Buffer.concat(chunks))
      done(line)
    }
    const over = () => end(undefined)
    const look = (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (chunk.includes(0x0a)) end(Buffer.concat(chunks).toString('utf8').split('\n', 1)[0])
      else if (size > first.maxBytes) over()
    }
    const timer = setTimeout(over, first.timeoutMs)
    socket.on('data', look).on('end', over)
  })
}
