// `node read-bare.mjs FOLDER memory|disk`: a bare `node:http` server that answers a read with the same bytes as hikidashi. It checks nothing.
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'

const fromDisk = process.argv[3] === 'disk'
const known = new Map()
const server = { name: 'hikidashi', version: '0.1.0' }
const headers = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff', 'Content-Type': 'application/json' }

function bytesOf(uri) {
  if (!known.has(uri)) known.set(uri, readFileSync(fileURLToPath(uri)))
  return known.get(uri)
}

/** Cached texts, as strings. Bytes are encoded again for each answer. */
const texts = new Map()
async function contentOf(uri) {
  const bytes = fromDisk ? await readFile(fileURLToPath(uri)) : bytesOf(uri)
  if (uri.endsWith('.bin')) return { mimeType: 'application/octet-stream', blob: bytes.toString('base64') }
  if (fromDisk) return { mimeType: 'text/plain', text: bytes.toString() }
  if (!texts.has(uri)) texts.set(uri, bytesOf(uri).toString())
  return { mimeType: 'text/plain', text: texts.get(uri) }
}

async function answerTo({ id, params }) {
  const { uri } = params ?? {}
  if (uri === undefined) return { jsonrpc: '2.0', id, result: {} }
  const _meta = { 'dev.hikidashi/version': 'mg1h2a3b4c5d.mg1h2a3b4c5d.sg.1a2b3c' }
  const contents = [{ uri, ...(await contentOf(uri)), _meta }]
  const facts = { ttlMs: 0, cacheScope: 'private', resultType: 'complete' }
  return {
    ...{ jsonrpc: '2.0', id },
    result: { ...facts, contents, _meta: { 'io.modelcontextprotocol/serverInfo': server } },
  }
}

const http = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', async () => {
    const body = Buffer.from(JSON.stringify(await answerTo(JSON.parse(Buffer.concat(chunks).toString()))))
    response.writeHead(200, { ...headers, 'Content-Length': body.length })
    response.end(body)
  })
})
http.listen(0, '127.0.0.1', () => process.stderr.write(`http://127.0.0.1:${http.address().port}/mcp\n`))
process.on('SIGINT', () => process.exit())
