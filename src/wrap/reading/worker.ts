import { parentPort } from 'node:worker_threads'
import { isResourceError } from '../../core/errors.ts'
import type { ReadingAnswer, ReadingJob } from './job.ts'
import { readDocument } from './read.ts'

/** Reads documents away from the thread that serves, one after the other. */
parentPort?.on('message', async (job: ReadingJob) => {
  parentPort?.postMessage(await answer(job))
})
parentPort?.postMessage('ready')

async function answer(job: ReadingJob): Promise<ReadingAnswer> {
  try {
    return { reading: await readDocument(job) }
  } catch (error) {
    if (isResourceError(error, 'invalid') || isResourceError(error, 'too-large'))
      return {
        kind: error.kind === 'invalid' ? 'invalid' : 'too-large',
        reason: String(error.detail.reason),
        message: error.message,
      }
    // Whatever a parser stumbles over is in the document.
    return { kind: 'invalid', reason: 'damaged', message: 'The document is damaged.' }
  }
}
