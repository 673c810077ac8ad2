/**
 * Measures reads over HTTP, beside bare `node:http` servers that answer with the same bytes, from memory and by `fs.promises.readFile`, in turns within one run:
 * `npx tsx bench/read.ts [--rounds N] [--seconds N] [--work NAME] [--only NAME,...] [--before FOLDER] [--peers]`, after a build. The load
 * comes from wrk, which is a package of Debian. `--before` names a folder with another build of hikidashi (`dist` and its imports).
 * `--peers` adds the official SDK and tmcp, which call `readFile`. Linux only: it reads `/proc`.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { installPeers, peersFolder } from './peers.ts'
import type { Revision } from './resources/client.ts'
import { idMark, load } from './resources/load.ts'
import { start } from './resources/running.ts'
import { fixed, median, progress, table } from './support.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    work: { type: 'string', default: '' },
    only: { type: 'string', default: '' },
    before: { type: 'string' },
    peers: { type: 'boolean', default: false },
  },
})
const root = resolve(import.meta.dirname, '..')
const temporary = mkdtempSync(join(tmpdir(), 'hikidashi-read-'))
const folder = join(temporary, 'folder')
const tokens = join(temporary, 'tokens.json')
const env = { ...process.env, XDG_STATE_HOME: join(temporary, 'state'), XDG_CACHE_HOME: join(temporary, 'cache') }

const manyFiles = Array.from({ length: 10_000 }, (_, at) => `many/f-${String(at).padStart(6, '0')}.txt`)

const works = [
  { name: '1 KiB, 32 connections', files: ['f-000050.txt'], connections: 32 },
  { name: '1 KiB, 1 connection', files: ['f-000050.txt'], connections: 1 },
  { name: '10,000 different files of 1 KiB, 32 connections', files: manyFiles, connections: 32 },
  { name: '1 MiB of bytes, 8 connections', files: ['large.bin'], connections: 8 },
  { name: '1 MiB of text, 8 connections', files: ['large.txt'], connections: 8 },
] as const

interface Server {
  readonly name: string
  readonly command: readonly string[]
  readonly revision: Revision
  readonly token?: string
  readonly uriOf?: (name: string) => string
}

function makeFolder(): void {
  mkdirSync(join(folder, 'many'), { recursive: true })
  const text = `${'A line of a file that is served. '.repeat(31)}\n`
  for (let at = 0; at < 100; at++) writeFileSync(join(folder, `f-${String(at).padStart(6, '0')}.txt`), text)
  for (const file of manyFiles) writeFileSync(join(folder, file), text)
  writeFileSync(join(folder, 'large.txt'), `${'One line.\n'.repeat(104_857)}12345\n`)
  writeFileSync(
    join(folder, 'large.bin'),
    Uint8Array.from({ length: 1 << 20 }, (_, at) => (at * 7919) >> 3),
  )
}

/** The build of hikidashi in a folder as three servers: without a token, with a session, and with a token. */
function builds(name: string, built: string): readonly Server[] {
  const main = join(built, 'dist/cli/main.js')
  const command = [main, 'serve', folder, '--only', 'files', '--http', '0']
  const added = execFileSync(process.execPath, [main, 'token', 'add', '--tokens', tokens, '--name', `${name}`], { env })
  const token = /hkd_\S+/.exec(String(added))?.[0] ?? ''
  const config = join(temporary, `${name.replaceAll(/\W/g, '-')}.json`)
  // Raise the limits of one principal, because all requests come from the same one.
  const limits = { perPrincipal: { rate: 0, concurrent: 64 } }
  const mounts = { [pathToFileURL(folder).href]: { provider: 'files', root: folder } }
  writeFileSync(config, JSON.stringify({ mounts, http: { limits, auth: { tokens } } }))
  return [
    { name, command, revision: '2026-07-28' },
    { name: `${name}, a session`, command, revision: '2025-11-25' },
    {
      name: `${name}, a token`,
      command: [main, 'serve', '--config', config, '--http', '0'],
      revision: '2026-07-28',
      token,
    },
  ]
}

function servers(): readonly Server[] {
  const bare = join(root, 'bench/servers/read-bare.mjs')
  const uriOf = (name: string) => `bench://docs/${name}`
  const peer = (name: string, program: string) =>
    ({ name, command: [join(peersFolder, 'servers', program), folder], revision: '2026-07-28', uriOf }) as const
  return [
    { name: 'bare', command: [bare, folder, 'memory'], revision: '2026-07-28' },
    { name: 'bare, from the disk', command: [bare, folder, 'disk'], revision: '2026-07-28' },
    ...(values.peers ? [peer('SDK 2', 'sdk-v2.mjs'), peer('tmcp', 'tmcp.mjs')] : []),
    ...(values.before === undefined ? [] : builds('before', values.before)),
    ...builds('hikidashi', root),
  ]
}

const measured = new Map<string, number[]>()
function note(...[server, work, measure, value]: readonly [string, string, string, number]): void {
  const key = [server, work, measure].join('\n')
  measured.set(key, [...(measured.get(key) ?? []), value])
}

async function measure(server: Server, { name, files, connections }: (typeof works)[number]): Promise<void> {
  const { revision, token, uriOf = (each: string) => pathToFileURL(join(folder, each)).href } = server
  const contender = {
    ...{ name: server.name, revision, uriOf: (_: string, each: string) => uriOf(each), lists: false, tells: false },
    command: () => server.command,
  }
  const running = await start(contender, folder, { ...env, BENCH_FOLDER: folder }, token)
  try {
    const params = { uri: uriOf(files[0]) }
    const answer = JSON.stringify(await running.client.call('resources/read', params))
    const sent = files.map((file) => running.client.sent('resources/read', { uri: uriOf(file) }, idMark))
    const seconds = Number(values.seconds)
    const found = await load(running, {
      requests: sent,
      minBytes: answer.length * 0.9,
      connections,
      seconds,
      // Every file is read before: the first read of a file, and code that V8 has not compiled yet, are no steady state.
      warmUpSeconds: files.length > 1 ? 15 : 1,
      temporary,
    })
    for (const [measure, value] of Object.entries(found)) note(server.name, name, measure, value)
    note(server.name, name, 'memory', running.memory())
  } finally {
    await running.end()
  }
}

try {
  if (values.peers) installPeers()
  makeFolder()
  const chosen = works.filter(({ name }) => name.includes(values.work))
  const all = servers().filter(
    ({ name }) => name.startsWith('bare') || values.only.split(',').some((part) => name.includes(part)),
  )
  for (const work of chosen) {
    for (let round = 0; round < Number(values.rounds); round++)
      for (const [at] of all.entries()) {
        const server = all[(at + round) % all.length]
        if (server === undefined) continue
        progress(`${work.name}, round ${round + 1} of ${values.rounds}: ${server.name}`)
        await measure(server, work).catch((error: unknown) => progress(`${server.name}: ${String(error)}`))
      }
    print(work.name, all)
  }
} finally {
  rmSync(temporary, { recursive: true, force: true })
}

function print(work: string, all: readonly Server[]): void {
  const of = (server: string, measure: string) => median(measured.get([server, work, measure].join('\n')) ?? [])
  const rows = all.map(({ name }) => {
    const [cpu, p50, p99] = [of(name, 'cpu'), of(name, 'p50'), of(name, 'p99')]
    return [
      ...[
        name,
        fixed(cpu, 0),
        `${fixed(cpu / of('bare, from the disk', 'cpu'), 2)} ×`,
        fixed(of(name, 'perSecond'), 0),
      ],
      ...[fixed(p50), fixed(p99), fixed(p99 / p50), fixed(of(name, 'memory'), 0)],
    ]
  })
  console.log(
    `${table([work, 'CPU, µs a request', 'to bare, from the disk', 'a second', 'p50, ms', 'p99, ms', 'p99 to p50', 'memory, MiB'], rows)}\n`,
  )
}
