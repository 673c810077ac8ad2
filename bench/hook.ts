/**
 * `npx tsx bench/hook.ts [runs]`, after a build (Linux): measures how long a host waits for `hikidashi pack --hook claude-code`, from the
 * start of the process to its end: over this repository, and over 20,000 files. Warm: a server of the folder runs. Cold: none
 * runs, and the index on the disk answers; with `first`, after the cache of compiled code was removed.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Session, startSession } from './session.ts'
import { fixed, median, progress, table } from './support.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const main = join(root, 'dist/cli/main.js')
const runs = Number(process.argv[2] ?? 15)
if (!(runs > 0)) throw new Error('The argument is a number of runs.')
const askIntervalMs = 250
const vocabulary = 'anchor harbour tide rope sail wind storm calm deck keel mast chart light star wave'.split(' ')

/** Makes 20,000 files of about 1 KiB, a hundred per folder. A few of them have the words of the question. */
function makeFolder(folder: string): void {
  for (let at = 0; at < 20_000; at++) {
    const inner = join(folder, `group-${at % 10}`, `folder-${String(Math.floor(at / 100)).padStart(3, '0')}`)
    if (at % 100 < 10) mkdirSync(inner, { recursive: true })
    const words = Array.from({ length: 150 }, (_, i) => vocabulary[(at * 7 + i * i) % vocabulary.length] ?? '')
    const rare = at % 2000 === 7 ? 'The mooring fee of a visiting vessel is paid at the office.\n' : ''
    writeFileSync(join(inner, `note-${at}.md`), `# Note ${at}\n\n${words.join(' ')}\n${rare}`)
  }
}

/** Runs the hook as a host does. Returns the time, and the length of what the host gets. */
async function askHook(folder: string, prompt: string, env: NodeJS.ProcessEnv) {
  const begun = performance.now()
  const child = spawn(process.execPath, [main, 'pack', '--hook', 'claude-code', '--wait', '20000'], {
    cwd: folder,
    env,
  })
  let length = 0
  child.stdout.on('data', (chunk: Buffer) => {
    length += chunk.length
  })
  child.stderr.resume()
  child.stdin.end(JSON.stringify({ prompt, cwd: folder, hook_event_name: 'UserPromptSubmit' }))
  await once(child, 'close')
  return { ms: performance.now() - begun, length }
}

/** Waits until the folder is indexed. */
async function indexed({ ask }: Session, folder: string): Promise<void> {
  const uri = `search://${basename(folder).toLowerCase()}?q=mooring`
  for (;;) {
    const { contents } = await ask('resources/read', { uri })
    const [found] = (contents ?? []) as readonly { readonly text: string }[]
    if (found === undefined) throw new Error(`${uri} is not there.`)
    if ((JSON.parse(found.text) as { readonly notes: readonly string[] }).notes.length === 0) return
    await pause(askIntervalMs)
  }
}

async function times(name: string, folder: string, prompt: string): Promise<readonly (readonly string[])[]> {
  const home = mkdtempSync(join(tmpdir(), 'hikidashi-hook-'))
  const env = { ...process.env, XDG_STATE_HOME: join(home, 'state'), XDG_CACHE_HOME: join(home, 'cache') }
  try {
    progress(`${name}: it is indexed`)
    const session = await startSession(['.'], env, folder)
    await indexed(session, folder)
    const rowOf = async (state: string, before: () => void, count: number) => {
      const took: number[] = []
      for (let i = 0; i < count; i++) {
        before()
        const { ms, length } = await askHook(folder, prompt, env)
        if (length === 0) throw new Error(`${name}, ${state}: the hook was silent.`)
        took.push(ms)
      }
      return [name, state, fixed(median(took), 0), fixed(Math.max(...took), 0)]
    }
    progress(`${name}: the hook is asked`)
    const warm = await rowOf('warm', () => {}, runs)
    await session.end()
    const cold = await rowOf('cold', () => {}, runs)
    const forget = () => rmSync(join(home, 'cache'), { recursive: true, force: true })
    return [warm, cold, await rowOf('cold, first', forget, Math.ceil(runs / 3))]
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-notes-'))
try {
  makeFolder(folder)
  const rows = [
    ...(await times('this repository', root, 'how does the server keep a cursor secret from its clients')),
    ...(await times('20,000 files', folder, 'what is the mooring fee of a visiting vessel')),
  ]
  process.stdout.write(`${table(['', '', 'p50, ms', 'slowest, ms'], rows)}\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
