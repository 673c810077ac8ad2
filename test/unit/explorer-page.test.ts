import type { IncomingMessage } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { createPageHandler, type PageHandler } from '../../src/explorer/index.ts'
import { createFolder } from '../support/folder.ts'

const folder = createFolder()
afterAll(folder.remove)
const index = '<!doctype html><meta name="mcp" content="mcp"><title>x</title>'
folder.write({
  'index.html': index,
  'assets/main-abc.js': 'const greeting = 1\n'.repeat(100),
  'assets/picture-abc.png': Buffer.from([1, 2, 3]),
  'assets/cmap-abc.bcmap': 'x',
  '../outside/secret.txt': 'secret',
})

/** What a page answers, with a body as text. */
async function ask(page: PageHandler, url: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') {
  const answer = await page({ url, method, headers } as unknown as IncomingMessage)
  if (answer === undefined) return undefined
  const body = 'body' in answer ? Buffer.from(answer.body) : Buffer.from(answer.message)
  return { status: answer.status, headers: new Headers({ ...answer.headers }), body }
}

describe('the files of the explorer', () => {
  const opened = createPageHandler({ folder: folder.root })

  test('are an index at the folder of the MCP endpoint, and assets below it, with their MIME types', async () => {
    const page = await opened
    const [start, script, picture, other] = await Promise.all([
      ask(page, '/'),
      ask(page, '/assets/main-abc.js'),
      ask(page, '/assets/picture-abc.png'),
      ask(page, '/assets/cmap-abc.bcmap'),
    ])
    expect(start?.body.toString()).toBe(index)
    expect(start?.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(script?.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(picture?.body).toEqual(Buffer.from([1, 2, 3]))
    expect(picture?.headers.get('content-type')).toBe('image/png')
    expect(other?.headers.get('content-type')).toBe('application/octet-stream')
    expect(await ask(page, '/?x=1')).toMatchObject({ status: 200 })
  })

  test.each([
    '/mcp',
    '/index.html',
    '/assets',
    '/assets/',
    '/assets/../index.html',
    '/assets/..%2f..%2foutside%2fsecret.txt',
    '//assets/main-abc.js',
    '/assets/main-abc.js/',
    '/ASSETS/main-abc.js',
    'http://127.0.0.1/',
  ])('are found by exact names only: %s is absent', async (url) => {
    expect(await ask(await opened, url)).toBeUndefined()
  })

  test('lie beside the MCP endpoint at any path, and the page gets the name of the endpoint', async () => {
    const page = await createPageHandler({ folder: folder.root, path: '/a/b/context' })
    expect((await ask(page, '/a/b/'))?.body.toString()).toContain('<meta name="mcp" content="context">')
    expect(await ask(page, '/a/b/assets/main-abc.js')).toMatchObject({ status: 200 })
    expect(await ask(page, '/')).toBeUndefined()
    expect(await ask(page, '/a/b/context')).toBeUndefined()
  })

  test('with hashed names are cached as immutable; the index is requested each time', async () => {
    const page = await opened
    expect((await ask(page, '/assets/main-abc.js'))?.headers.get('cache-control')).toContain('immutable')
    const start = await ask(page, '/')
    expect(start?.headers.get('cache-control')).toBe('no-cache')
    const etag = start?.headers.get('etag') ?? ''
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await ask(page, '/', { 'if-none-match': tag })
      expect(again).toMatchObject({ status: 304, body: Buffer.alloc(0) })
      expect(again?.headers.get('content-security-policy')).not.toBeNull()
    }
    expect(await ask(page, '/', { 'if-none-match': '"other"' })).toMatchObject({ status: 200 })
  })

  test('are compressed as the browser accepts, except pictures, with an ETag of its own for each encoding', async () => {
    const page = await opened
    const of = (encodings: string) => ask(page, '/assets/main-abc.js', { 'accept-encoding': encodings })
    const plain = await of('')
    const brotli = await of('gzip, deflate, br')
    const gzip = await of('gzip;q=1.0, br;q=0')
    expect(brotli?.headers.get('content-encoding')).toBe('br')
    expect(brotliDecompressSync(brotli?.body ?? '')).toEqual(plain?.body)
    expect(gzip?.headers.get('content-encoding')).toBe('gzip')
    expect(gunzipSync(gzip?.body ?? '')).toEqual(plain?.body)
    expect(new Set([plain, brotli, gzip].map((one) => one?.headers.get('etag'))).size).toBe(3)
    for (const one of [plain, brotli, gzip]) expect(one?.headers.get('vary')).toBe('Accept-Encoding')
    const picture = await ask(page, '/assets/picture-abc.png', { 'accept-encoding': 'br' })
    expect(picture?.headers.get('content-encoding')).toBeNull()
  })

  test('are served for GET and HEAD only', async () => {
    const page = await opened
    expect(await ask(page, '/', {}, 'HEAD')).toMatchObject({ status: 200 })
    const refused = await ask(page, '/', {}, 'POST')
    expect(refused?.status).toBe(405)
    expect(refused?.headers.get('allow')).toBe('GET, HEAD')
  })

  test('include an empty frame for previews, which runs no script', async () => {
    const frame = await ask(await opened, '/frame.html')
    const policy = frame?.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toMatch(/script-src|connect-src|frame-src|'self'(?!$)/)
    expect(policy).toMatch(/frame-ancestors 'self'$/)
    expect(frame?.body.toString()).not.toContain('<script')
  })

  test('give an error with advice if they were not built', async () => {
    await expect(createPageHandler({ folder: folder.outside })).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('npm run build'),
    })
  })
})
