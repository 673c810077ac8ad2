import { parentPort } from 'node:worker_threads'
import { isResourceError } from '../core/errors.ts'
import { readDocx } from './docx.ts'
import { type Reading, type ReadingAnswer, type ReadingJob, unreadable } from './formats.ts'
import { readHtml } from './html.ts'
import { readNotebook } from './notebook.ts'
import { readPdf } from './pdf.ts'
import { readPptx } from './pptx.ts'
import { readSheets, readXlsx } from './xlsx.ts'

/**
 * Reads a document. Faults of the document throw a ResourceError `invalid` or `too-large`; after any other error the thread must
 * not be used again.
 */
export async function readDocument({ format, form, bytes, limits }: ReadingJob): Promise<Reading> {
  if (bytes.length === 0) throw unreadable('The document is empty.', 'damaged')
  if (form === 'csv') {
    if (format === 'xlsx') return readSheets(bytes, limits)
    throw unreadable('Only a workbook has sheets.', 'damaged')
  }
  if (format === 'pdf') return readPdf(bytes, limits)
  if (format === 'html') return readHtml(bytes, form, limits)
  if (format === 'ipynb') return readNotebook(bytes, form, limits)
  const reading = await readers[format](bytes, form, limits)
  if (reading.text.trim() === '') throw unreadable('The document holds no text.', 'no-text')
  return reading
}

const readers = { docx: readDocx, xlsx: readXlsx, pptx: readPptx } as const

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
      return { kind: error.kind, reason: error.detail.reason ?? 'damaged', message: error.message }
    throw error
  }
}
