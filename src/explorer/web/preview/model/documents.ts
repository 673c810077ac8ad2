import { mediaTypeOf } from './kind.ts'

/** As what a document is read: Markdown where its source knows headings and tables in it, else text. */
export type DocumentForm = 'markdown' | 'text'

const officeEnding = /\.(?:docx|docm|dotx|xlsx|xlsm|xltx|pptx|pptm|ppsx)$/i

/** How a Word, Excel, PowerPoint or PDF document is read. `undefined`: it is none of these. */
export function documentFormOf(uri: string, mimeType: string | undefined): DocumentForm | undefined {
  const path = uri.replace(/[?#].*$/s, '')
  const type = mediaTypeOf(mimeType) ?? ''
  if (/\.pdf$/i.test(path) || type === 'application/pdf') return 'text'
  return officeEnding.test(path) || type.includes('openxmlformats-officedocument') ? 'markdown' : undefined
}

export function isPdf(uri: string, mimeType: string | undefined): boolean {
  return documentFormOf(uri, mimeType) === 'text'
}
