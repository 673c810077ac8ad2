import { join } from 'node:path'

export async function start() {
  const server = join(import.meta.dirname, '../../fixtures/mcp/old.mjs')
  return { mount: { command: process.execPath, args: [server, 'sdk124'] } }
}
