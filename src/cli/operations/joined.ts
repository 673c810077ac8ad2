import type { Socket } from 'node:net'
import type { MountedCatalog } from '../../config/build.ts'
import { type BriefOptions, briefFor, disabledBrief } from '../../context/brief.ts'
import { createReadingCaches, type ReadingCache } from '../../context/memory.ts'
import { defined, isObject, jsonIn } from '../../core/kit/object.ts'
import type { PendingOpen } from '../../core/opening.ts'
import { localPrincipal } from '../../server/serve.ts'
import { type StdioOptions, serveStdio } from '../../server/stdio/serve-stdio.ts'
import { type Secrets, secretsInEnvironment } from '../terminal/secrets.ts'
import { cleanView } from './clean-view.ts'

/** The question of a hook, which a running server gets as one line of JSON. */
export interface BriefRequest extends Pick<BriefOptions, 'prompt' | 'budget' | 'minScore'> {
  readonly hikidashi: 'brief'
}

interface Joinable {
  readonly opening: PendingOpen<MountedCatalog>
  readonly secrets: Secrets
  /**
   * Whether a server that starts now would serve other mounts or settings. A host that joins then gets a server of its
   * own.
   */
  readonly isOutdated: () => Promise<boolean>
  readonly hook?: boolean | undefined
}

const first = { maxBytes: 4 * 1024 * 1024, timeoutMs: 10_000 }

let readingCache: ReadingCache | undefined

/** Serves another process: a host as over stdio, or a hook with one question. */
export async function serveOtherProcess(
  socket: Socket,
  service: StdioOptions,
  { opening, secrets, isOutdated, hook = true }: Joinable,
): Promise<void> {
  const request = jsonIn((await firstLine(socket)) ?? '')
  if (!isObject(request)) return void socket.end()
  if (request.hikidashi === 'join' && isObject(request.env)) {
    // The environment of the other process may contain secrets that this process does not know.
    secrets.add(secretsInEnvironment(request.env as Readonly<Record<string, string>>))
    void isOutdated().then((isSo) => isSo && socket.destroy())
    await serveStdio({ ...service, input: socket, output: socket })
    return void socket.end()
  }
  if (request.hikidashi !== 'brief' || typeof request.prompt !== 'string') return void socket.end()
  if (!hook) return void socket.end(`${JSON.stringify(disabledBrief)}\n`)
  const answer = await opening
    .whenOpen()
    .then((catalog) => {
      readingCache ??= createReadingCaches()('hook')
      const view = cleanView(catalog.view(service.principal ?? localPrincipal), secrets)
      const { prompt, budget, minScore } = request as unknown as BriefRequest
      return briefFor(view, { prompt, now: Date.now(), memory: readingCache, ...defined({ budget, minScore }) })
    })
    .catch((error: unknown) => ({ silence: error instanceof Error ? error.message : 'unknown' }))
  socket.end(`${JSON.stringify(answer)}\n`)
}

/** Returns `undefined` for a line that is too long or comes too late. */
function firstLine(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const end = (line: string | undefined) => {
      clearTimeout(timer)
      socket.off('data', look).off('end', over).pause()
      resolve(line)
    }
    const over = () => end(undefined)
    const look = (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      const at = bytes.indexOf(0x0a)
      if (at === -1) return bytes.length > first.maxBytes ? over() : undefined
      end(bytes.toString('utf8', 0, at))
      if (at + 1 < bytes.length) socket.unshift(bytes.subarray(at + 1))
    }
    const timer = setTimeout(over, first.timeoutMs)
    socket.on('data', look).on('end', over)
  })
}
