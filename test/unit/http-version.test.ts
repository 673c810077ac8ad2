import { afterAll, beforeAll, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { type HttpService, serveHttp } from '../../src/server/index.ts'
import { memory } from '../support/memory.ts'

let service: HttpService

beforeAll(async () => {
  const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider: memory({ a: 'a' }) }] })
  const view = catalog.view
  service = await serveHttp({ view, name: 't', version: '1', log: () => {}, host: '127.0.0.1', port: 0 })
})

afterAll(() => service.close())

/** A request whose header says one version and whose body another. */
async function ask(header: string | undefined, body: string) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': body,
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const response = await fetch(service.url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'Mcp-Method': 'resources/list',
      ...(header === undefined ? {} : { 'MCP-Protocol-Version': header }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/list', params: { _meta } }),
  })
  const { error } = (await response.json()) as { readonly error?: { readonly code: number } }
  return { status: response.status, code: error?.code }
}

test.each([
  ['both name the served version, which is accepted', '2026-07-28', '2026-07-28', 200, undefined],
  ['both name an unknown version, which is refused', '2030-01-01', '2030-01-01', 400, -32022],
  ['only the body names a version, and an unknown one, which is refused', undefined, '2030-01-01', 400, -32022],
  ['the body names another known version than the header, which is refused', '2026-07-28', '2025-11-25', 400, -32020],
  [
    'the body names another and unknown version than the header, which is refused',
    '2026-07-28',
    '2030-01-01',
    400,
    -32020,
  ],
  ['the header names another version than the body, which is refused', '2025-11-25', '2026-07-28', 400, -32020],
  ['the header is missing, which is refused', undefined, '2026-07-28', 400, -32020],
])(
  'the version in the header MCP-Protocol-Version must be a served one and equal the version in the body: %s',
  async (_, header, body, status, code) => {
    expect(await ask(header, body)).toEqual({ status, code })
  },
)
