import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect, onTestFinished, test } from 'vitest'
import { serveFixtures } from '../../conformance/fixtures.ts'

test('the fixtures of the conformance suite report changes of prompts and tools, and check the headers of a tool', async () => {
  const service = await serveFixtures()
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  onTestFinished(async () => {
    await client.close()
    await service.close()
  })
  await client.connect(new StreamableHTTPClientTransport(new URL(service.url)))
  expect(client.getServerCapabilities()).toMatchObject({ tools: { listChanged: true }, prompts: { listChanged: true } })
  const heard: string[] = []
  client.fallbackNotificationHandler = async ({ method }) => void heard.push(method)
  await client.listen({ toolsListChanged: true, promptsListChanged: true })
  await client.listTools()
  for (const what of ['prompt', 'tool']) {
    await client.callTool({ name: `test_trigger_${what}_change` })
    await expect.poll(() => heard, { timeout: 10_000 }).toContain(`notifications/${what}s/list_changed`)
  }
  const call = async (headers: Record<string, string>) => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const params = { name: 'test_custom_header', arguments: { region: 'Hello' }, _meta: meta }
    const response = await fetch(service.url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': '2026-07-28',
        'Mcp-Method': 'tools/call',
        'Mcp-Name': 'test_custom_header',
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    })
    const { error } = (await response.json()) as { readonly error?: { readonly code: number } }
    return [response.status, error?.code]
  }
  expect(await call({ 'Mcp-Param-Region': 'Hello' })).toEqual([200, undefined])
  expect(await call({ 'mcp-param-region': ' =?base64?SGVsbG8=?= ' })).toEqual([200, undefined])
  for (const wrong of ['hello', '=?base64?SGVsbG8?=', '=?BASE64?SGVsbG8=?=', '=?base64?SGVs!!!bG8=?=', 'SGVsbG8='])
    expect(await call({ 'Mcp-Param-Region': wrong })).toEqual([400, -32020])
  expect(await call({})).toEqual([400, -32020])
}, 60_000)
