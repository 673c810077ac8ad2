import { parentPort } from 'node:worker_threads'
import { isResourceError } from '../core/errors.ts'
import type { ReadingAnswer, ReadingJob } from './job.ts'
import { readDocument } from './read.ts'

/** Reads documents away from the thread that serves, one after the other. An unexpected error ends the worker. */
parentPort?.on('message', async (job: ReadingJob) => {
  parentPort?.postMessage(await answer(job))
})
parentPort?.postMessage('ready')

async function answer(job: ReadingJob): Promise<ReadingAnswer> {
  try {
    return { reading: await readDocument(job) }
  } catch (error) {
    if (isResourceError(error) && (error.kind === 'invalid' || error.kind === 'too-large'))
      return { kind: error.kind, reason: String(error.detail.reason), message: error.message }
    throw error
  }
}
