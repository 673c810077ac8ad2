import { readDocx } from './docx.ts'
import { readHtml } from './html.ts'
import { type Reading, type ReadingJob, unreadable } from './job.ts'
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
  switch (format) {
    case 'pdf':
      return readPdf(bytes, limits)
    case 'docx':
      return readDocx(bytes, form, limits)
    case 'xlsx':
      return readXlsx(bytes, form, limits)
    case 'pptx':
      return readPptx(bytes, form, limits)
    case 'html':
      return readHtml(bytes, form, limits)
  }
}
