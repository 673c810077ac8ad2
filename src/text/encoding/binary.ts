/** Types that are never text, whatever their bytes look like. */
const media = /^(?:image\/(?!svg\b)|audio\/|video\/|font\/|application\/(?:pdf|zip|gzip|wasm)\b)/

/** First bytes of binary formats that may continue for long without a byte that no text contains. */
const beginnings: readonly string[] = [
  '%PDF-',
  'PK\x03\x04',
  'PK\x05\x06',
  '\x89PNG',
  'GIF87a',
  'GIF89a',
  '\xff\xd8\xff',
  '\x1f\x8b',
  'BZh',
  '\xfd7zXZ',
  '7z\xbc\xaf',
  'Rar!',
  '\x28\xb5\x2f\xfd',
  '\xd0\xcf\x11\xe0',
  '\x7fELF',
  '\xca\xfe\xba\xbe',
  'ID3',
  'OggS',
  'fLaC',
  'RIFF',
  'wOFF',
  'wOF2',
]

/** Whether a type is one of pictures, sound or archives. */
export function isMedia(mimeType = ''): boolean {
  return media.test(mimeType)
}

/** Whether bytes are of a format that is not text, judged by their declared type or their first bytes. */
export function isBinary(bytes: Uint8Array, mimeType?: string): boolean {
  const head = Buffer.from(bytes.subarray(0, 8)).toString('latin1')
  return isMedia(mimeType) || beginnings.some((beginning) => head.startsWith(beginning))
}
