import { mediaTypeOf } from './kind.ts'

const names: Readonly<Record<string, string>> = {
  'application/pdf': 'PDF',
  'application/zip': 'ZIP',
  'application/octet-stream': 'binary',
  'text/plain': 'text',
  'text/markdown': 'Markdown',
  'text/html': 'HTML',
  'image/svg+xml': 'SVG',
  'application/x-sh': 'shell',
  'application/manifest+json': 'JSON',
}

/** A MIME type in one word, as people call it: `text/typescript` is `typescript`. Empty for none. */
export function typeName(mimeType: string | undefined): string {
  const type = mediaTypeOf(mimeType)
  if (type === undefined) return ''
  const named = names[type]
  if (named !== undefined) return named
  if (type.includes('wordprocessingml')) return 'Word'
  if (type.includes('spreadsheetml')) return 'Excel'
  if (type.includes('presentationml')) return 'PowerPoint'
  const subtype = type.slice(type.indexOf('/') + 1).replace(/^(?:x-|vnd\.)+/, '')
  const word = subtype.split(/[+.;]/).at(subtype.includes('+') ? -1 : 0) ?? subtype
  return word.length > 14 ? word.slice(0, 13).concat('…') : word
}
