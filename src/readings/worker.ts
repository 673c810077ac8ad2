import { parentPort } from 'node:worker_threads'
import { isResourceError } from '../core/errors.ts'
import { decodeBytes } from '../text/encoding/decode.ts'
import { detectEncoding } from '../text/encoding/detect.ts'
import { readDoc } from './binary/doc.ts'
import { readPpt } from './binary/ppt.ts'
import { readXls } from './binary/xls.ts'
import { readXlsb } from './binary/xlsb.ts'
import { readDocx } from './docx.ts'
import { readEpub } from './epub.ts'
import {
  type DocumentFormat,
  type Reading,
  type ReadingAnswer,
  type ReadingForm,
  type ReadingJob,
  type ReadingLimits,
  unreadableError,
} from './formats.ts'
import { readHtml } from './html.ts'
import { readMail } from './mail.ts'
import { readNotebook } from './notebook.ts'
import { readOdf } from './odf.ts'
import { drawPdfPage, readPdf } from './pdf.ts'
import { readPptx } from './pptx.ts'
import { recogniseFormat } from './recognise.ts'
import { readRtf } from './rtf.ts'
import { createDocumentWriter } from './writer.ts'
import { readSheetsAsCsv, readXlsx } from './xlsx.ts'

/**
 * Reads a document. Faults of the document throw a ResourceError `invalid` or `too-large`; after any other error the thread must not be
 * used again.
 */
export async function readDocument({
  format: documentFormat,
  form,
  bytes,
  limits,
  page,
  ocr,
}: ReadingJob): Promise<Reading> {
  if (bytes.length === 0) throw unreadableError('The document is empty.')
  const format = await recogniseFormat(bytes, documentFormat, limits.unpacked)
  if (form === 'csv') {
    if (format === 'xlsx') return readSheetsAsCsv(bytes, limits)
    throw unreadableError('The document is not an .xlsx workbook, so its sheets cannot be read one by one.')
  }
  if (form === 'picture') return { text: '', picture: await drawPdfPage(bytes, page ?? 0) }
  if (format === 'text') return readPlainText(bytes, form, limits)
  if (format === 'pdf') return readPdf(bytes, limits, ocr)
  const reading = await readers[format](bytes, form, limits)
  // A web page or a notebook without text is not an error.
  if (reading.text.trim() === '' && format !== 'html' && format !== 'ipynb')
    throw unreadableError('The document contains no text.')
  return reading
}

const readMessage: DocumentReader = (bytes, form, limits) => readMail(bytes, form, limits, readDocument)

type DocumentReader = (bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits) => Reading | Promise<Reading>

const readers: Readonly<Record<Exclude<DocumentFormat, 'pdf'>, DocumentReader>> = {
  docx: readDocx,
  xlsx: readXlsx,
  xlsb: readXlsb,
  xls: readXls,
  pptx: readPptx,
  ppt: readPpt,
  odf: readOdf,
  epub: readEpub,
  mail: readMessage,
  msg: readMessage,
  rtf: readRtf,
  doc: readDoc,
  html: readHtml,
  ipynb: readNotebook,
}

function readPlainText(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Reading {
  const writer = createDocumentWriter(form, limits.characters)
  writer.block(decodeBytes(bytes, detectEncoding(bytes) ?? 'utf-8') ?? '')
  return { text: writer.finish() }
}

// An unexpected error rejects this promise, which ends the thread.
parentPort?.on('message', async (job: ReadingJob) => {
  parentPort?.postMessage(await runReadingJob(job))
})
parentPort?.postMessage('ready')

async function runReadingJob(job: ReadingJob): Promise<ReadingAnswer> {
  try {
    return { reading: await readDocument(job) }
  } catch (error) {
    if (isResourceError(error) && (error.kind === 'invalid' || error.kind === 'too-large'))
      return { kind: error.kind, reason: error.detail.reason ?? 'unreadable', message: error.message }
    throw error
  }
}
