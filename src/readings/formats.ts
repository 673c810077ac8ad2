/** Documents that have a reading as text. */
export type Format = 'pdf' | 'docx' | 'xlsx' | 'pptx' | 'html'

/** Form of a reading. A PDF has only text: its headings and tables are unknown. */
export type Form = 'text' | 'markdown'

const types: Readonly<Record<string, Format>> = {
  'application/pdf': 'pdf',
  'text/html': 'html',
  'application/xhtml+xml': 'html',
}

const extensions: Readonly<Record<string, Format>> = {
  pdf: 'pdf',
  docx: 'docx',
  docm: 'docx',
  dotx: 'docx',
  xlsx: 'xlsx',
  xlsm: 'xlsx',
  xltx: 'xlsx',
  pptx: 'pptx',
  pptm: 'pptx',
  ppsx: 'pptx',
  html: 'html',
  htm: 'html',
  xhtml: 'html',
}

/** The format of a document, by the extension of its path, or else by its MIME type. */
export function formatOf(path: string, mimeType: string | undefined): Format | undefined {
  const extension = /\.(\w{3,5})$/.exec(path)?.[1]?.toLowerCase() ?? ''
  if (Object.hasOwn(extensions, extension)) return extensions[extension]
  const type = mimeType?.split(';')[0]?.trim().toLowerCase() ?? ''
  return Object.hasOwn(types, type) ? types[type] : officeFormat(type)
}

function officeFormat(type: string): Format | undefined {
  if (!type.includes('openxmlformats-officedocument')) return undefined
  if (type.includes('wordprocessingml')) return 'docx'
  if (type.includes('spreadsheetml')) return 'xlsx'
  return type.includes('presentationml') ? 'pptx' : undefined
}

/** The forms that documents of a format can be read as. */
export function formsOf(format: Format): readonly Form[] {
  return format === 'pdf' ? ['text'] : ['text', 'markdown']
}
