import { documentFormatOf, type ReadingForm, readingFormsOf } from '../../../../core/documents.ts'
import { defined } from '../../../../core/kit/object.ts'

type PreviewKind =
  | 'empty'
  | 'directory'
  | 'markdown'
  | 'json'
  | 'lines'
  | 'table'
  | 'page'
  | 'drawing'
  | 'diff'
  | 'log'
  | 'text'
  | 'image'
  | 'audio'
  | 'video'
  | 'pdf'
  | 'binary'

interface KindFacts {
  readonly uri: string
  readonly mimeType?: string | undefined
  readonly text?: string | undefined
  readonly bytes?: Uint8Array | undefined
}

/** How a content is previewed. */
export interface PreviewShape {
  readonly kind: PreviewKind
  readonly language?: string
  /** The type of an image by its bytes, or of a sound or film as declared. */
  readonly mediaType?: string
  /** The hikidashi format of a JSON document: `DatabaseSchema`, `SearchFound`. */
  readonly format?: string
}

const kinds: Readonly<Record<string, PreviewKind>> = {
  'inode/directory': 'directory',
  'text/markdown': 'markdown',
  'text/x-markdown': 'markdown',
  'application/json': 'json',
  'text/json': 'json',
  'application/jsonl': 'lines',
  'application/x-jsonlines': 'lines',
  'application/x-ndjson': 'lines',
  'application/ndjson': 'lines',
  'application/json-lines': 'lines',
  'text/csv': 'table',
  'text/tab-separated-values': 'table',
  'text/html': 'page',
  'application/xhtml+xml': 'page',
  'image/svg+xml': 'drawing',
  'text/x-diff': 'diff',
  'text/x-patch': 'diff',
}

/** Kinds by file extension for plain text. None of them runs in a browser. */
const safe: Readonly<Record<string, PreviewKind>> = {
  md: 'markdown',
  markdown: 'markdown',
  json: 'json',
  ipynb: 'json',
  jsonl: 'lines',
  ndjson: 'lines',
  csv: 'table',
  tsv: 'table',
  diff: 'diff',
  patch: 'diff',
}

/** Returns a media type in lower case, without parameters. `undefined`: there is none, or it is invalid (RFC 6838, section 4.2). */
export function mediaTypeOf(mimeType: string | undefined): string | undefined {
  const [type = ''] = (mimeType ?? '').split(';')
  const name = type.trim().toLowerCase()
  return /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/.test(name) ? name : undefined
}

/**
 * Determines the preview of a text by its type, else by its extension and content, and that of bytes by their signature, else by their
 * type.
 */
export function shapeOf({ uri, mimeType, text, bytes }: KindFacts): PreviewShape {
  const type = mediaTypeOf(mimeType)
  if (type === 'inode/directory') return { kind: 'directory' }
  if (text !== undefined) return shapeOfText(uri, type, mimeType, text)
  if (bytes === undefined || bytes.length === 0) return { kind: 'empty' }
  return shapeOfBytes(type, bytes)
}

function shapeOfText(uri: string, type: string | undefined, mimeType: string | undefined, text: string): PreviewShape {
  if (text === '') return { kind: 'empty' }
  const ending = endingOf(uri)
  const isPlain = type === undefined || type === 'text/plain' || type === 'application/octet-stream'
  const byType = type === undefined ? undefined : (kinds[type] ?? (type.endsWith('+json') ? 'json' : undefined))
  const kind = byType ?? (isPlain ? (type === undefined || ending !== 'md' ? safe[ending] : undefined) : undefined)
  if (kind === 'json') {
    // The hikidashi format in a JSON media type: `application/json;format=hikidashi.SearchFound`.
    const format = formatIn(mimeType)
    return { kind, language: 'json', ...defined({ format }) }
  }
  if (kind === 'markdown' || kind === 'diff') return { kind, language: kind }
  if (kind === 'page' || kind === 'drawing') return { kind, language: 'xml' }
  if (kind !== undefined) return { kind }
  if (/^(diff --git |commit [0-9a-f]{40}\n[\s\S]{0,20000}^diff --git )/m.test(text.slice(0, 40_000)) && isPlain)
    return { kind: 'diff', language: 'diff' }
  if (isPlain && /\/log(\?[^#]*)?$/.test(uri) && /^Log of [^\n]+, newest first\.\n/.test(text)) return { kind: 'log' }
  const language = languageOf(type, uri)
  return { kind: 'text', ...defined({ language }) }
}

function shapeOfBytes(type: string | undefined, bytes: Uint8Array): PreviewShape {
  const image = imageTypeOf(bytes)
  if (image !== undefined) return { kind: 'image', mediaType: image }
  if (latin(bytes.subarray(0, 1024)).includes('%PDF-')) return { kind: 'pdf' }
  if (type === 'image/svg+xml') return { kind: 'drawing', language: 'xml' }
  if (type?.startsWith('audio/')) return { kind: 'audio', mediaType: type }
  if (type?.startsWith('video/')) return { kind: 'video', mediaType: type }
  return { kind: 'binary' }
}

/** Returns the type of an image that browsers draw, by its first bytes. The declared type does not count. */
export function imageTypeOf(bytes: Uint8Array): string | undefined {
  const head = latin(bytes.subarray(0, 32))
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (/^GIF8[79]a/.test(head)) return 'image/gif'
  if (head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP') return 'image/webp'
  if (head.slice(4, 8) === 'ftyp' && /avif|avis/.test(head)) return 'image/avif'
  if (head.startsWith('BM') && bytes.length > 26) return 'image/bmp'
  if (head.startsWith('\0\0\x01\0') && bytes.length > 22) return 'image/x-icon'
  return undefined
}

function latin(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}

/** The extension of the last segment of a URI, in lower case; empty if it has none. */
export function endingOf(uri: string): string {
  const path = uri.replace(/[?#].*$/s, '')
  const name = path.slice(path.lastIndexOf('/') + 1)
  const dot = name.lastIndexOf('.')
  return dot === -1 ? '' : name.slice(dot + 1).toLowerCase()
}

const names: Readonly<Record<string, string>> = {
  'application/pdf': 'PDF',
  'application/zip': 'ZIP',
  'application/octet-stream': 'Binary',
  'application/json': 'JSON',
  'application/ld+json': 'JSON-LD',
  'application/x-ndjson': 'JSON Lines',
  'application/jsonl': 'JSON Lines',
  'application/x-ipynb+json': 'Notebook',
  'application/toml': 'TOML',
  'application/xml': 'XML',
  'text/xml': 'XML',
  'application/yaml': 'YAML',
  'text/yaml': 'YAML',
  'application/sql': 'SQL',
  'application/javascript': 'JavaScript',
  'application/vnd.sqlite3': 'SQLite',
  'application/vnd.ms-excel': 'Excel',
  'application/msword': 'Word',
  'application/vnd.ms-powerpoint': 'PowerPoint',
  'application/epub+zip': 'EPUB',
  'application/rtf': 'RTF',
  'message/rfc822': 'Mail',
  'text/plain': 'Text',
  'text/csv': 'CSV',
  'text/tab-separated-values': 'TSV',
  'text/javascript': 'JavaScript',
  'text/typescript': 'TypeScript',
  'text/x-c': 'C',
  'text/x-c++': 'C++',
  'text/x-csharp': 'C#',
  'text/x-java-source': 'Java',
  'text/calendar': 'Calendar',
  'text/vtt': 'Subtitles',
  'image/jpeg': 'JPEG',
  'image/webp': 'WebP',
  'audio/mpeg': 'MP3',
  'text/markdown': 'Markdown',
  'text/css': 'CSS',
  'text/x-php': 'PHP',
  'text/x-sql': 'SQL',
  'text/x-sh': 'Shell',
  'text/x-shellscript': 'Shell',
  'text/x-scss': 'SCSS',
  'text/html': 'HTML',
  'image/svg+xml': 'SVG',
  'application/x-sh': 'Shell',
  'application/manifest+json': 'JSON',
}

/** Names of types by file extension. Servers declare a more general type for these files. */
const namesByEnding: Readonly<Record<string, string>> = {
  ...{ ipynb: 'Notebook', log: 'Log', tsx: 'TypeScript JSX', jsx: 'JavaScript JSX', vue: 'Vue', svelte: 'Svelte' },
}

/** Names of the formats of hikidashi, which are JSON. */
const namesByFormat: Readonly<Record<string, string>> = {
  ...{
    DatabaseRows: 'Rows',
    DatabaseSchema: 'Table',
    DatabaseOverview: 'Tables',
    SearchFound: 'Hits',
    Series: 'Series',
  },
}

const formatIn = (mimeType = '') => /;\s*format=hikidashi\.([A-Za-z]{1,64})\s*$/.exec(mimeType)?.[1]

/** The name of a type as people write it: `text/typescript` is TypeScript. Empty without a type. */
export function typeName(mimeType: string | undefined, uri = ''): string {
  const type = mediaTypeOf(mimeType)
  const byEnding = namesByEnding[endingOf(uri)]
  if (byEnding !== undefined) return byEnding
  if (type === undefined) return ''
  const named = namesByFormat[formatIn(mimeType) ?? ''] ?? names[type]
  if (named !== undefined) return named
  if (type.includes('wordprocessingml')) return 'Word'
  if (type.includes('spreadsheetml')) return 'Excel'
  if (type.includes('presentationml')) return 'PowerPoint'
  if (type.includes('opendocument')) return 'OpenDocument'
  const subtype = type.slice(type.indexOf('/') + 1).replace(/^(?:x-|vnd\.)+/, '')
  const word = subtype.split(/[+.;]/).at(subtype.includes('+') ? -1 : 0) ?? subtype
  // Words are written with a capital, and the short names of formats in capitals.
  const isFormat = word.length <= 4 && /^(?:image|audio|video|application|font)\//.test(type)
  const label = isFormat ? word.toUpperCase() : `${word.charAt(0).toUpperCase()}${word.slice(1)}`
  return label.length > 14 ? `${label.slice(0, 13)}…` : label
}

/** The form in which a document is shown: Markdown if its format has headings and tables, else text. `undefined`: it is shown as it is. */
export function documentFormOf(uri: string, mimeType: string | undefined): ReadingForm | undefined {
  const format = documentFormatOf(uri.replace(/[?#].*$/s, ''), mimeType)
  // Pages and notebooks have views of their own.
  if (format === undefined || format === 'html' || format === 'ipynb') return undefined
  return readingFormsOf(format).at(-1)
}

/** Whether a document is a PDF: the only format that is shown as text, and not as Markdown. */
export function isPdf(uri: string, mimeType: string | undefined): boolean {
  return documentFormOf(uri, mimeType) === 'text'
}

/** File extensions by highlight.js language. */
const endings: Readonly<Record<string, string>> = {
  typescript: 'ts tsx mts cts',
  javascript: 'js jsx mjs cjs',
  json: 'json jsonc json5 webmanifest map code-workspace',
  python: 'py pyi pyw',
  go: 'go',
  rust: 'rs',
  java: 'java',
  kotlin: 'kt kts',
  swift: 'swift',
  c: 'c h',
  cpp: 'cc cpp cxx hh hpp hxx ino',
  csharp: 'cs csx',
  ruby: 'rb rake gemspec',
  php: 'php phtml',
  perl: 'pl pm',
  lua: 'lua',
  r: 'r',
  scala: 'scala sbt',
  elixir: 'ex exs',
  haskell: 'hs',
  bash: 'sh bash zsh ksh',
  powershell: 'ps1 psm1',
  dos: 'bat cmd',
  sql: 'sql',
  yaml: 'yaml yml',
  ini: 'ini toml cfg cnf conf editorconfig service desktop',
  properties: 'properties env',
  xml: 'xml html htm xhtml svg vue svelte rss atom plist xsd xsl',
  css: 'css',
  scss: 'scss',
  less: 'less',
  markdown: 'md markdown mdx',
  diff: 'diff patch',
  dockerfile: 'dockerfile',
  makefile: 'mk makefile',
  cmake: 'cmake',
  graphql: 'graphql gql',
  protobuf: 'proto',
  nginx: 'nginx',
  tex: 'tex sty',
}

/** Languages by MIME type. For any other type, the name in the type counts, if it is a language. */
const types: Readonly<Record<string, string>> = {
  'application/sql': 'sql',
  'application/toml': 'ini',
  'application/xml': 'xml',
  'application/yaml': 'yaml',
  'application/graphql': 'graphql',
  'application/javascript': 'javascript',
  'text/javascript': 'javascript',
  'text/x-sh': 'bash',
  'application/x-sh': 'bash',
  'text/x-c': 'c',
  'text/x-c++': 'cpp',
  'text/x-diff': 'diff',
}

const byEnding = new Map(
  Object.entries(endings).flatMap(([language, names]) => names.split(' ').map((name) => [name, language] as const)),
)

const languages: readonly string[] = Object.keys(endings)

/** The language for highlighting: by the name of the file, else by its type. */
export function languageOf(type: string | undefined, uri: string): string | undefined {
  const path = uri.replace(/[?#].*$/s, '')
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
  const icon = byEnding.get(name.slice(name.lastIndexOf('.') + 1)) ?? byEnding.get(name.split('.')[0] ?? '')
  if (icon !== undefined && (name.includes('.') || /^(dockerfile|makefile)/.test(name))) return icon
  if (type === undefined) return undefined
  if (types[type] !== undefined) return types[type]
  if (type.endsWith('+xml')) return 'xml'
  if (type.endsWith('+json')) return 'json'
  const plain = type.replace(/^[a-z]+\/(x-)?/, '').replace(/-source$/, '')
  return languages.includes(plain) ? plain : byEnding.get(plain)
}

/** The language in the info string of a Markdown fence. */
export function languageOfFence(info: string): string | undefined {
  const [name = ''] = info
    .trim()
    .toLowerCase()
    .split(/[\s,{:]/)
  if (name === 'shell' || name === 'console' || name === 'shellscript') return 'bash'
  if (name === 'toml') return 'ini'
  return languages.includes(name) ? name : byEnding.get(name)
}
