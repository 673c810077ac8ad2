import { createServer, type IncomingMessage } from 'node:http'
import { createPage } from '../../src/explorer/index.ts'
import { type Listening, listening } from './listening.ts'

/** The listing and contents of an endpoint, sent exactly as given. */
export interface RawEndpoint {
  readonly resources: readonly Readonly<Record<string, unknown>>[]
  /** The contents at a URI, without the URI. */
  readonly contents: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly server?: Readonly<Record<string, unknown>>
}

/**
 * Serves the built page beside an endpoint of 2026-07-28 that sends the given data without validation, as a hostile server could.
 */
export async function serveRaw({ resources, contents, server = { name: 'raw', version: '1' } }: RawEndpoint) {
  const page = await createPage()
  const mount = { uri: 'raw://all/', name: 'all', mimeType: 'inode/directory' }
  const results: Readonly<Record<string, (params: Readonly<Record<string, unknown>>) => unknown>> = {
    'server/discover': () => ({
      supportedVersions: ['2026-07-28'],
      capabilities: { resources: {} },
      serverInfo: server,
      _meta: { 'io.modelcontextprotocol/serverInfo': server },
    }),
    'tools/list': () => ({ tools: [] }),
    'resources/list': () => ({ resources, _meta: { 'dev.hikidashi/mounts': [mount] } }),
    'resources/templates/list': () => ({ resourceTemplates: [] }),
    'resources/directory/read': () => ({ resources }),
    'resources/read': ({ uri }) => {
      const content = contents[String(uri)]
      return content === undefined ? undefined : { contents: [{ uri, ...content }] }
    },
  }
  const answerTo = async (request: IncomingMessage): Promise<object> => {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { id, method, params = {} } = JSON.parse(Buffer.concat(chunks).toString())
    const result = results[method]?.(params)
    if (result !== undefined) return { jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } }
    const code = method in results ? -32602 : -32601
    return { jsonrpc: '2.0', id, error: { code, message: 'Not found', data: { uri: params.uri } } }
  }
  const started: Listening = await listening(
    createServer(async (request, response) => {
      const found = await page(request)
      if (found !== undefined) {
        response.writeHead(found.status, found.headers).end('body' in found ? found.body : found.message)
        return
      }
      const answer = await answerTo(request)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    }),
  )
  return { url: `${started.url}/`, close: started.close }
}
