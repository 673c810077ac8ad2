/**
 * `npx tsx scripts/code/read-path.ts`: prints the files and the number of functions that run for one read of a small file over HTTP, as
 * JSON, by V8's precise coverage. With `--names`: prints the functions, one per line.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './source.ts'

interface Passed {
  /** Paths relative to `src/`, sorted. */
  readonly files: readonly string[]
  /** Number of functions that ran at least once. */
  readonly functions: number
  /** The functions that ran, sorted, each with the number of its calls: `core/uri.ts parseUri 1`. */
  readonly calls: readonly string[]
}

const source = join(root, 'src')

/** Serves a folder, warms up with reads of one file, and traces a read of another file of 1 KiB. */
async function traceRead(): Promise<Passed> {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-read-'))
  for (const name of ['a.md', 'b.md']) writeFileSync(join(folder, name), 'a'.repeat(1024))
  const [{ createCatalog }, { files }, { serveHttp }] = await Promise.all([
    import('../../src/core/catalog.ts'),
    import('../../src/providers/files/index.ts'),
    import('../../src/server/index.ts'),
  ])
  const catalog = createCatalog({ mounts: [{ address: 'file:///a', provider: await files({ root: folder }) }] })
  const service = await serveHttp({
    view: (principal) => catalog.view(principal),
    name: 'traced',
    version: '0',
    log: () => {},
    host: '127.0.0.1',
    port: 0,
  })
  try {
    const read = () => readOnce(service.url, 'file:///a/a.md')
    stopClocks()
    // Open the connection, and cache the folder.
    for (let time = 0; time < 2; time++) await readOnce(service.url, 'file:///a/b.md')
    await read()
    return await trace(read)
  } finally {
    await service.close()
    await catalog.close()
    rmSync(folder, { recursive: true })
  }
}

/**
 * Stops the clocks of this process, 10 seconds after the file was written, so that a read runs the same code on a machine of any speed:
 * the provider checks a folder again that has just changed, or that it checked a second ago.
 */
function stopClocks(): void {
  const [date, time] = [Date.now() + 10_000, performance.now()]
  Object.assign(Date, { now: () => date })
  Object.assign(performance, { now: () => time })
}

async function trace(run: () => Promise<void>): Promise<Passed> {
  const session = new Session()
  session.connect()
  try {
    await session.post('Debugger.enable')
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    await session.post('Profiler.takePreciseCoverage')
    await run()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    const ours: { readonly file: string; readonly call: string }[] = []
    for (const { url, scriptId, functions } of result) {
      const file = url.startsWith('file:') ? relative(source, fileURLToPath(url)).replaceAll('\\', '/') : '..'
      // `__name` is a helper that tsx adds to files.
      const ran = functions.filter(
        ({ functionName, ranges }) => functionName !== '__name' && (ranges[0]?.count ?? 0) > 0,
      )
      if (file.startsWith('..') || ran.length === 0) continue
      const { scriptSource: text } = await session.post('Debugger.getScriptSource', { scriptId })
      for (const { functionName, ranges } of ran)
        ours.push({ file, call: `${file} ${functionName || nameIn(text, ranges[0])} ${ranges[0]?.count}` })
    }
    return {
      files: [...new Set(ours.map(({ file }) => file))].sort(),
      functions: ours.length,
      calls: ours.map(({ call }) => call).sort(),
    }
  } finally {
    session.disconnect()
  }
}

/** The name that tsx gives to a function (`__name(…, "name")`), or the beginning of the code of one that has none. */
function nameIn(text: string, range: { readonly startOffset: number; readonly endOffset: number } | undefined): string {
  if (range === undefined) return ''
  const [, name] = /^,\s*"([^"]+)"\)/.exec(text.slice(range.endOffset, range.endOffset + 60)) ?? []
  return (
    name ?? `‹${text.slice(range.startOffset, Math.min(range.endOffset, range.startOffset + 60)).replace(/\s+/g, ' ')}›`
  )
}

async function readOnce(url: string, uri: string): Promise<void> {
  const revision = '2026-07-28'
  const meta = {
    'io.modelcontextprotocol/protocolVersion': revision,
    'io.modelcontextprotocol/clientInfo': { name: 'traced', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': revision,
      'mcp-method': 'resources/read',
      'mcp-name': uri,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri, _meta: meta } }),
  })
  const text = await answer.text()
  if (!answer.ok || !text.includes('"contents"')) throw new Error(`The read failed: ${text.slice(0, 200)}`)
}

const walked = await traceRead()
const names = walked.calls.map((call) => `${call}\n`).join('')
const total = `${walked.functions} functions in ${walked.files.length} files\n`
process.stdout.write(process.argv.includes('--names') ? names + total : `${JSON.stringify(walked)}\n`)
