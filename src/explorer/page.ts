import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { extname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { invalid } from '../core/errors.ts'

/** Answer to a request: a body, or a refusal with a message. */
export type PageAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
} & ({ readonly body: Uint8Array } | { readonly message: string })

/** Answers a request for the page. `undefined`: the request is for something else. */
export type PageHandler = (request: IncomingMessage) => PageAnswer | undefined | Promise<PageAnswer | undefined>

interface PageOptions {
  /** The path of the MCP endpoint. The page is in the same folder. By default `/mcp`. */
  readonly path?: string
  /** Folder of the built page. Default: the output folder of `npm run build`. */
  readonly folder?: string
  /** Whether the page needs a session (`hikidashi ui`). By default false. */
  readonly isPrivate?: boolean
}

type ContentCoding = 'br' | 'gzip' | 'identity'

interface Served {
  readonly type: string
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: () => Promise<Buffer>
  readonly encoded: Map<ContentCoding, Promise<Buffer>>
  /** Whether the name of the file changes whenever its content does. */
  readonly immutable: boolean
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
  '.woff2': 'font/woff2',
}

const compressed = /^(?:text|application\/(?:json|wasm|octet-stream)|image\/svg)/

/** The document of the preview's frame. The page writes the previewed document into it. */
const emptyFrame = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Preview</title></html>'

/**
 * Quality of Brotli, because the first request waits for the compression. For the 167 KB that the page loads at first, 7 takes 20 ms of CPU
 * time, 9 takes 200 ms and saves 0.1 %.
 */
const brotliQuality = 7

const compressBrotli = promisify(brotliCompress)
const compressGzip = promisify(gzip)

/**
 * Serves the built page in the folder of the MCP endpoint: the index, the files beside it, and `frame.html`, which is empty. Serves files
 * that exist when this function is called.
 *
 * @throws ResourceError `invalid` when the page was not built.
 */
export async function createPageHandler({
  path = '/mcp',
  folder = builtPage(),
  isPrivate = false,
}: PageOptions = {}): Promise<PageHandler> {
  const base = path.slice(0, path.lastIndexOf('/') + 1)
  const name = path.slice(base.length)
  const files = await filesOf(folder)
  const frame = createServed('.html', async () => Buffer.from(emptyFrame), frameHeaders, false)
  const pages = new Map<string, Served>([[`${base}frame.html`, frame]])
  for (const file of files) {
    const isIndex = file === 'index.html'
    const bytes = isIndex ? () => readIndex(join(folder, file), name, isPrivate) : () => readFile(join(folder, file))
    pages.set(base + (isIndex ? '' : file), createServed(extname(file), bytes, pageHeaders, file.startsWith('assets/')))
  }
  return (request) => {
    const [path = ''] = (request.url ?? '').split('?', 1)
    const file = pages.get(path)
    if (file === undefined) return undefined
    if (request.method === 'GET' || request.method === 'HEAD') return serveFile(file, request)
    return { status: 405, headers: { Allow: 'GET, HEAD' }, message: 'The HTTP method is not allowed at this path.' }
  }
}

/** The folder of the build: beside this module in `dist`, or in `dist` when this module runs from `src`. */
function builtPage(): string {
  return fileURLToPath(new URL('../../dist/explorer/page', import.meta.url))
}

async function filesOf(folder: string): Promise<readonly string[]> {
  const isBuilt = await stat(join(folder, 'index.html')).then(
    (stats) => stats.isFile(),
    () => false,
  )
  if (!isBuilt) throw invalid('The page of the explorer is not built. Build it with: npm run build', 'configuration')
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.flatMap((entry) =>
    entry.isFile()
      ? [
          join(entry.parentPath, entry.name)
            .slice(folder.length + 1)
            .split(sep)
            .join('/'),
        ]
      : [],
  )
}

/** Writes the name of the MCP endpoint, and whether the page is private, into the index. */
async function readIndex(file: string, name: string, isPrivate: boolean): Promise<Buffer> {
  const text = await readFile(file, 'utf8')
  const html = text.replace('<meta name="mcp" content="mcp"', `<meta name="mcp" content="${name}"`)
  return Buffer.from(isPrivate ? html.replace('name="private" content="no"', 'name="private" content="yes"') : html)
}

function createServed(
  extension: string,
  bytes: () => Promise<Buffer>,
  headers: Readonly<Record<string, string>>,
  immutable: boolean,
): Served {
  const type = types[extension] ?? 'application/octet-stream'
  return { type, headers, bytes, immutable, encoded: new Map() }
}

async function serveFile(file: Served, request: IncomingMessage): Promise<PageAnswer> {
  const encoding = compressed.test(file.type) ? encodingFor(request.headers['accept-encoding']) : 'identity'
  const body = await encode(file, encoding)
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`
  const headers = {
    ...file.headers,
    'Cache-Control': file.immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    Vary: 'Accept-Encoding',
    ETag: etag,
  }
  const tags = (request.headers['if-none-match'] ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  if (tags.includes(etag)) return { status: 304, headers, body: new Uint8Array() }
  const encoded = encoding === 'identity' ? {} : { 'Content-Encoding': encoding }
  return { status: 200, headers: { ...headers, ...encoded, 'Content-Type': file.type }, body }
}

/** Compresses a file once for each encoding, and caches the result. */
function encode(file: Served, encoding: ContentCoding): Promise<Buffer> {
  const before = file.encoded.get(encoding)
  if (before !== undefined) return before
  const body = file.bytes().then((bytes) => compress(bytes, encoding))
  file.encoded.set(encoding, body)
  body.catch(() => file.encoded.delete(encoding))
  return body
}

async function compress(bytes: Buffer, encoding: ContentCoding): Promise<Buffer> {
  if (encoding === 'gzip') return compressGzip(bytes, { level: 9 })
  if (encoding === 'br') return compressBrotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: brotliQuality } })
  return bytes
}

function encodingFor(accepted: string | string[] | undefined): ContentCoding {
  const encodings = new Set(
    String(accepted ?? '')
      .split(',')
      .map((part) => part.trim().toLowerCase())
      .filter((part) => !/;\s*q=0(?:\.0*)?$/.test(part))
      .map((part) => part.split(';')[0]),
  )
  return encodings.has('br') ? 'br' : encodings.has('gzip') ? 'gzip' : 'identity'
}

/**
 * Headers of the files: no other origin can load them or reach the window of the page; the page sends no referrer and cannot use the camera
 * and the like.
 */
const common = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Origin-Agent-Cluster': '?1',
  'Permissions-Policy': [
    ...['accelerometer', 'autoplay', 'camera', 'clipboard-read', 'display-capture', 'encrypted-media', 'fullscreen'],
    ...['geolocation', 'gyroscope', 'hid', 'magnetometer', 'microphone', 'midi', 'payment', 'picture-in-picture'],
    ...['publickey-credentials-get', 'screen-wake-lock', 'serial', 'usb', 'xr-spatial-tracking'],
  ]
    .map((name) => `${name}=()`)
    .join(', '),
} as const

/** The page runs its own scripts and styles, connects to its own server, and turns no unchecked text into markup. */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "media-src 'self' blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types dompurify hikidashi',
].join('; ')

/** Policy of the empty frame around a previewed document, which inherits it: no script runs and nothing is fetched. */
const framePolicy = [
  "default-src 'none'",
  "style-src 'unsafe-inline'",
  'img-src data:',
  'font-src data:',
  'media-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
].join('; ')

const pageHeaders = { ...common, 'Content-Security-Policy': pagePolicy, 'X-Frame-Options': 'DENY' } as const

const frameHeaders = {
  ...common,
  'Content-Security-Policy': framePolicy,
  'X-Frame-Options': 'SAMEORIGIN',
} as const
