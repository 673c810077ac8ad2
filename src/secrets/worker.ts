import { parentPort } from 'node:worker_threads'
import { type Answer, type Job, redactBytes, redactWindow } from './window.ts'

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
