import { parentPort } from 'node:worker_threads'
import type { FindOptions } from './find.ts'
import { type CleanBytes, type CleanPart, redactBytes, redactWindow, type Window } from './window.ts'

/** Job of the worker: remove the secrets from a part of a text, or from bytes. */
export type Job = FindOptions & ({ readonly window: Window } | { readonly bytes: Uint8Array })

/** Answer of the worker. An error has no text, because that might hold a part of the scanned content. */
export type Answer = { readonly part: CleanPart } | { readonly clean: CleanBytes } | { readonly error: true }

async function answer(job: Job): Promise<Answer> {
  if ('window' in job) return { part: await redactWindow(job.window, job) }
  const { buffer, byteOffset, byteLength } = job.bytes
  return { clean: await redactBytes(Buffer.from(buffer, byteOffset, byteLength), job) }
}

parentPort?.on('message', (job: Job) => {
  answer(job).then(
    (found) => parentPort?.postMessage(found),
    () => parentPort?.postMessage({ error: true } satisfies Answer),
  )
})
parentPort?.postMessage('ready')
