import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { fixed, median, progress, table } from './support.ts'

// Measures the time from a finished write to the first answer of a search that has it, in one folder and one run. hikidashi follows the
// folder by itself; `mcp-local-rag` and `@tobilu/qmd` index a file when they are told to, which counts as a part of the time. Install them with
// `npm install mcp-local-rag @tobilu/qmd` in a folder, and name it: `npx tsx bench/fresh.ts --peers FOLDER`.

const { values } = parseArgs({
  options: {
    writes: { type: 'string', default: '200' },
    /** Number of other files in the folder. */
    files: { type: 'string', default: '2000' },
    /** The folder with the peers. */
    peers: { type: 'string' },
    /** Number of writes of each peer. */
    'peer-writes': { type: 'string', default: '20' },
  },
})
const run = promisify(execFile)
const home = mkdtempSync(join(tmpdir(), 'hikidashi-fresh-'))
const docs = join(home, 'docs')
mkdirSync(docs)
const text = (word: string) => `# About ${word}\n\n${`The ${word} lies between anchors and boats. `.repeat(20)}\n`
for (let i = 0; i < Number(values.files); i++) writeFileSync(join(docs, `note-${i}.md`), text(`thing${i}`))

let writes = 0
/** Writes a new document with a word that no other has, and returns how long it takes until `find` has it. */
async function timeOf(find: (word: string, file: string) => Promise<boolean>): Promise<number> {
  const word = `zebra${++writes}q`
  const file = join(docs, `new-${writes % 50}.md`)
  writeFileSync(file, text(word))
  const start = performance.now()
  while (!(await find(word, file))) if (performance.now() - start > 60_000) return Number.POSITIVE_INFINITY
  return performance.now() - start
}

async function measure(name: string, count: number, find: (word: string, file: string) => Promise<boolean>) {
  const times: number[] = []
  for (let i = 0; i < count; i++) times.push(await timeOf(find))
  const p99 = [...times].sort((a, b) => a - b)[Math.ceil(0.99 * times.length) - 1] ?? Number.NaN
  progress(`${name}: p50 ${fixed(median(times))} ms, p99 ${fixed(p99)} ms`)
  return [name, count, fixed(median(times)), fixed(p99)]
}

async function connected(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const transport = new StdioClientTransport({
    ...{ command, args: [...args], cwd: home, stderr: 'ignore' },
    env: { PATH: process.env.PATH ?? '', HOME: home, ...env },
  })
  const client = new Client({ name: 'bench', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(transport)
  return client
}

async function hikidashi() {
  writeFileSync(
    join(home, 'hikidashi.json'),
    JSON.stringify({
      store: { sqlite: 'store.sqlite' },
      mounts: {
        'file:///docs': { provider: 'files', root: 'docs' },
        'search://all': { provider: 'search', over: ['file:///docs'] },
      },
    }),
  )
  const main = join(import.meta.dirname, '../dist/cli/main.js')
  const client = await connected(process.execPath, [main, 'serve', '--config', 'hikidashi.json', '--stdio'])
  const has = async (uri: string, word: string) => {
    const { contents } = await client.readResource({ uri })
    return JSON.stringify(contents).includes(`About ${word}`)
  }
  const search = (word: string) => has(`search://all?q=${word}&limit=5`, word)
  const fresh = (word: string) => has(`search://all?q=${word}&limit=5&fresh=true`, word)
  // Wait until the folder is indexed.
  await timeOf(fresh)
  const rows = [
    await measure('hikidashi, asked again and again', Number(values.writes), search),
    await measure('hikidashi, `fresh`, one answer', Number(values.writes), fresh),
  ]
  await client.close()
  return rows
}

async function localRag(folder: string) {
  const client = await connected(process.execPath, [join(folder, 'node_modules/mcp-local-rag/dist/index.js')], {
    BASE_DIR: docs,
    DB_PATH: join(home, 'lancedb'),
    CACHE_DIR: join(folder, 'models'),
  })
  try {
    return await measure('mcp-local-rag, told of the file', Number(values['peer-writes']), async (word, filePath) => {
      const told = await client.callTool({ name: 'ingest_file', arguments: { filePath } })
      if (told.isError === true) throw new Error(JSON.stringify(told.content).slice(0, 300))
      const found = await client.callTool({ name: 'query_documents', arguments: { query: word, limit: 5 } })
      return JSON.stringify(found.content).includes(word)
    })
  } finally {
    await client.close()
  }
}

async function qmd(folder: string) {
  const program = join(folder, 'node_modules/.bin/qmd')
  const env = { PATH: process.env.PATH ?? '', HOME: home, XDG_CACHE_HOME: join(home, 'cache') }
  await run(program, ['collection', 'add', docs, '--name', 'docs'], { env, cwd: home })
  return measure('qmd, told to update', Number(values['peer-writes']), async (word) => {
    await run(program, ['update'], { env, cwd: home, maxBuffer: 2 ** 26 })
    const { stdout } = await run(program, ['search', word], { env, cwd: home, maxBuffer: 2 ** 26 })
    return stdout.includes(word)
  })
}

const rows = await hikidashi()
for (const peer of values.peers === undefined ? [] : [qmd, localRag])
  try {
    rows.push(await peer(values.peers ?? ''))
  } catch (error) {
    // A peer that needs a model from the network may not run.
    rows.push([peer.name, '–', '–', `did not run: ${error instanceof Error ? error.message.slice(0, 120) : 'error'}`])
  }
console.log(table(['', 'writes', 'p50, ms', 'p99, ms'], rows))
rmSync(home, { recursive: true, force: true })
