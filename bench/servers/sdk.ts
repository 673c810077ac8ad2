import { readdirSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

// Serves a folder as in the SDK's guide: one registerResource for each file.
const root = process.argv[2] ?? '.'
const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) =>
  statSync(join(root, path)).isFile(),
)
serveStdio(() => {
  const server = new McpServer({ name: 'sdk', version: '0' })
  for (const path of paths) {
    const uri = pathToFileURL(join(root, path)).href
    server.registerResource(path, uri, { mimeType: 'text/plain' }, async (url) => ({
      contents: [{ uri: url.href, mimeType: 'text/plain', text: await readFile(url, 'utf8') }],
    }))
  }
  return server
})
