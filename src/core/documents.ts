/** Formats of the documents that can be read as text. `odf`: OpenDocument. `xls`, `doc`, `ppt`: the binary formats of Office. */
export type DocumentFormat =
  | 'pdf'
  | 'docx'
  | 'xlsx'
  | 'xlsb'
  | 'xls'
  | 'pptx'
  | 'ppt'
  | 'odf'
  | 'epub'
  | 'mail'
  | 'msg'
  | 'rtf'
  | 'doc'
  | 'html'
  | 'ipynb'

/** Form of the text of a document. */
export type ReadingForm = 'text' | 'markdown'

/** Beginnings of MIME types. The first format that fits is taken, so the order matters. */
const types: Readonly<Record<DocumentFormat, readonly string[]>> = {
  pdf: ['application/pdf'],
  docx: ['application/vnd.openxmlformats-officedocument.wordprocessingml', 'application/vnd.ms-word'],
  xlsb: ['application/vnd.ms-excel.sheet.binary.'],
  xlsx: ['application/vnd.openxmlformats-officedocument.spreadsheetml', 'application/vnd.ms-excel.'],
  xls: ['application/vnd.ms-excel'],
  pptx: ['application/vnd.openxmlformats-officedocument.presentationml', 'application/vnd.ms-powerpoint.'],
  odf: ['application/vnd.oasis.opendocument.'],
  epub: ['application/epub+zip'],
  ppt: ['application/vnd.ms-powerpoint'],
  msg: ['application/vnd.ms-outlook'],
  mail: ['message/rfc822', 'application/mbox', 'multipart/related'],
  rtf: ['text/rtf', 'application/rtf'],
  doc: ['application/msword'],
  html: ['text/html', 'application/xhtml+xml'],
  ipynb: ['application/x-ipynb+json'],
}

const extensions: Readonly<Record<DocumentFormat, string>> = {
  pdf: 'pdf',
  docx: 'docx docm dotx dotm',
  xlsb: 'xlsb',
  xls: 'xls xlt xla',
  xlsx: 'xlsx xlsm xltx xltm',
  pptx: 'pptx pptm ppsx ppsm potx potm',
  odf: 'odt ott fodt ods ots fods odp otp fodp odg otg fodg',
  epub: 'epub',
  ppt: 'ppt pot pps',
  msg: 'msg oft',
  mail: 'eml mht mhtml mbox',
  rtf: 'rtf',
  doc: 'doc',
  html: 'html htm xhtml',
  ipynb: 'ipynb',
}

const formats = Object.keys(types) as readonly DocumentFormat[]
const formatsByExtension: ReadonlyMap<string, DocumentFormat> = new Map(
  formats.flatMap((format) => extensions[format].split(' ').map((extension) => [extension, format] as const)),
)

/** The format of a document, by the extension of its path, or else by its MIME type. Undefined for any other resource. */
export function documentFormatOf(path: string, mimeType: string | undefined): DocumentFormat | undefined {
  const extension = /\.(\w{3,5})$/.exec(path)?.[1]?.toLowerCase() ?? ''
  const documentFormat = formatsByExtension.get(extension)
  if (documentFormat !== undefined || mimeType === undefined) return documentFormat
  const type = mimeType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return formats.find((format) => types[format].some((beginning) => type.startsWith(beginning)))
}

/** Returns the forms in which documents of a format can be read, the plainest first. */
export function readingFormsOf(format: DocumentFormat): readonly ReadingForm[] {
  return format === 'pdf' ? ['text'] : ['text', 'markdown']
}

/**
 * Whether documents of a format are read without decoding them first, because they state the encodings of their texts.
 */
export function namesEncodings(format: DocumentFormat): boolean {
  return ['mail', 'rtf', 'doc', 'xls'].includes(format)
}
