import { describe, expect, test } from 'vitest'
import { explorerUrlOf, openExplorerPage } from '../../src/cli/operations/serving.ts'

const loopback = { host: '127.0.0.1' }
const silent = () => {}

describe('the explorer of a server', () => {
  test('is off if the configuration says so, or other machines can connect', async () => {
    expect(await openExplorerPage({ explorer: false }, loopback, silent)).toBeUndefined()
    expect(await openExplorerPage({}, { host: '0.0.0.0' }, silent)).toBeUndefined()
    expect(await openExplorerPage(undefined, { host: 'context.example.org' }, silent)).toBeUndefined()
  })

  test('is off if the path of the MCP endpoint ends with a slash, and gives an error if it is turned on then', async () => {
    expect(await openExplorerPage({ path: '/' }, loopback, silent)).toBeUndefined()
    await expect(openExplorerPage({ path: '/mcp/', explorer: true }, loopback, silent)).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringContaining('End the path with a name'),
    })
  })

  test.each([
    ['http://127.0.0.1:8787/mcp', 'http://127.0.0.1:8787/'],
    ['http://[::1]:80/a/b/context', 'http://[::1]:80/a/b/'],
  ])('is served beside %s', (url, page) => {
    expect(explorerUrlOf(url)).toBe(page)
  })
})
