import { parentPort } from 'node:worker_threads'
import { type RedactionJob, redactBytes, redactWindow, type ScanAnswer } from './window.ts'

async function runRedactionJob(job: RedactionJob): Promise<ScanAnswer> {
  if ('window' in job) return { part: await redactWindow(job.window, job) }
  const { buffer, byteOffset, byteLength } = job.bytes
  return { clean: await redactBytes(Buffer.from(buffer, byteOffset, byteLength), job) }
}

parentPort?.on('message', (job: RedactionJob) => {
  runRedactionJob(job).then(
    (answer) => parentPort?.postMessage(answer),
    () => parentPort?.postMessage({ error: true } satisfies ScanAnswer),
  )
})
parentPort?.postMessage('ready')
