import { type Reading, type ReadingJob, unreadable } from './job.ts'

/** Reads a document. Each format's library is loaded when it is first needed. */
export async function readDocument({ format, form, bytes, limits }: ReadingJob): Promise<Reading> {
  if (bytes.length === 0) throw unreadable('The document is empty.', 'damaged')
  switch (format) {
    case 'pdf':
      return (await import('./pdf.ts')).readPdf(bytes, limits)
    case 'docx':
      return (await import('./docx.ts')).readDocx(bytes, form, limits)
    case 'xlsx':
      return (await import('./xlsx.ts')).readXlsx(bytes, form, limits)
    case 'pptx':
      return (await import('./pptx.ts')).readPptx(bytes, form, limits)
    case 'html':
      return (await import('./html.ts')).readHtml(bytes, form, limits)
  }
}
