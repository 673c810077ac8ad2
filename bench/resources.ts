/**
 * Compares servers of resources on the same work, in turns within one run: `npx tsx bench/resources.ts [--rounds N] [--seconds N]
 * [--only NAME] [--chart FILE]`, after a build. The load comes from wrk, which is a package of Debian. The first run installs the other
 * servers (`bench/peers`). Linux only: it reads `/proc`.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { installPeers } from './peers.ts'
import { drawChart, type Panel } from './resources/chart.ts'
import { idMark, load } from './resources/load.ts'
import { type Running, start } from './resources/running.ts'
import { type Contender, contenders } from './resources/servers.ts'
import { fixed, median, progress, table } from './support.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
    chart: { type: 'string' },
  },
})
const rounds = Number(values.rounds)
const seconds = Number(values.seconds)
const changes = 100
/** Numbers of files of 1 KiB in the folders. Each folder also has one file of 1 MiB. */
const sizes = { small: 100, middle: 10_000, large: 100_000 } as const
const nameOf = (at: number) => `f-${String(at).padStart(6, '0')}.txt`
const largeName = 'large.txt'
const temporary = mkdtempSync(join(tmpdir(), 'hikidashi-resources-'))
const env = { ...process.env, XDG_STATE_HOME: join(temporary, 'state'), XDG_CACHE_HOME: join(temporary, 'cache') }

function makeFolder(size: keyof typeof sizes): string {
  const folder = join(temporary, size)
  mkdirSync(folder)
  const text = `${'A line of a file that is served. '.repeat(31)}\n`
  for (let at = 0; at < sizes[size]; at++) writeFileSync(join(folder, nameOf(at)), text)
  writeFileSync(join(folder, largeName), `${'One line.\n'.repeat(104_857)}12345\n`)
  return folder
}

/** The measured values, by server and by the name of the measure. Each round adds one value. */
const measured = new Map<string, Map<string, number[]>>()
function note(server: string, measure: string, value: number): void {
  const all = measured.get(server) ?? new Map<string, number[]>()
  measured.set(server, all)
  all.set(measure, [...(all.get(measure) ?? []), value])
}

/** Lists everything, page by page. Returns the number of entries. */
async function listAll({ client }: Running): Promise<number> {
  let cursor: string | undefined
  let entries = 0
  do {
    const page = await client.call('resources/list', cursor === undefined ? {} : { cursor })
    entries += (page.resources as readonly unknown[]).length
    cursor = page.nextCursor as string | undefined
  } while (cursor !== undefined)
  return entries
}

/** Lists a folder twice while a client listens for changes. Only the second list is measured, because the first may fill a cache. */
async function measureList(
  { name, tells, uriOf }: Contender,
  running: Running,
  size: 'middle' | 'large',
  folder: string,
): Promise<void> {
  const expected = sizes[size] + 1
  if (tells) await running.client.listen([uriOf(folder, nameOf(0))], () => {})
  await listAll(running)
  const [cpu, begun] = [running.cpuMs(), performance.now()]
  const entries = await listAll(running)
  if (entries < expected) throw new Error(`${name} lists ${entries} of ${expected} resources.`)
  note(name, `list ${size} ms`, performance.now() - begun)
  note(name, `list ${size} cpu`, running.cpuMs() - cpu)
  note(name, `list ${size} memory`, running.memory())
}

/** Checks the answers, and then sends the requests with wrk. */
async function measureLoad(
  contender: Contender,
  running: Running,
  measure: string,
  { connections, requests }: { readonly connections: number; readonly requests: readonly Asked[] },
): Promise<void> {
  let minBytes = 0
  for (const [method, params, expected] of requests) {
    const text = JSON.stringify(await running.client.call(method, params))
    minBytes += (text.length * 0.7) / requests.length
    if (!text.includes(expected)) throw new Error(`${contender.name} answers ${measure} wrongly.`)
  }
  const sent = requests.map(([method, params]) => running.client.sent(method, params, idMark))
  const found = await load(running, { requests: sent, minBytes, connections, seconds, temporary })
  note(contender.name, `${measure} per second`, found.perSecond)
  note(contender.name, `${measure} cpu`, found.cpu)
  note(contender.name, `${measure} p50`, found.p50)
  note(contender.name, `${measure} p99`, found.p99)
}

/** A method, its parameters, and a part of the right answer. */
type Asked = readonly [method: string, params: Readonly<Record<string, unknown>>, expected: string]

/** Changes one file after the other, and measures the delay until the client is notified. */
async function measureChanges(contender: Contender, running: Running, folder: string): Promise<void> {
  const { name } = contender
  const names = Array.from({ length: 50 }, (_, at) => nameOf(at))
  const waiting = new Map<string, () => void>()
  const uris = names.map((each) => contender.uriOf(folder, each))
  await running.client.listen(uris, (uri) => waiting.get(uri)?.())
  const delays: number[] = []
  const cpu = running.cpuMs()
  let missed = 0
  for (let change = 0; change < changes; change++) {
    const at = change % names.length
    const uri = uris[at] ?? ''
    const told = new Promise<boolean>((resolve) => {
      waiting.set(uri, () => resolve(true))
      setTimeout(() => resolve(false), 3000).unref()
    })
    const begun = performance.now()
    writeFileSync(join(folder, names[at] ?? ''), `Change ${change}.\n`)
    if (await told) delays.push(performance.now() - begun)
    else missed++
    waiting.delete(uri)
    if (missed > 3) break
  }
  note(name, 'untold', missed)
  if (delays.length > 0) note(name, 'told ms', median(delays))
  note(name, 'told cpu', ((running.cpuMs() - cpu) * 1000) / changes)
}

/** Runs all measurements on one server once. */
async function round(contender: Contender, folders: Readonly<Record<keyof typeof sizes, string>>): Promise<void> {
  const { name, uriOf, templated, completed, lists, tells } = contender
  const isOwnText = name.startsWith('server-everything')
  const serve = async (folder: string, work: (running: Running) => Promise<void>) => {
    const running = await start(contender, folder, { ...env, BENCH_FOLDER: folder })
    try {
      await work(running)
    } finally {
      await running.end()
    }
  }
  await serve(folders.middle, async (running) => {
    note(name, 'start ms', running.startMs)
    note(name, 'start cpu', running.cpuMs())
    note(name, 'start memory', running.memory())
    const text = isOwnText ? 'Resource 1' : 'A line of a file'
    const one = nameOf(5000)
    const small: Asked = ['resources/read', { uri: uriOf(folders.middle, one) }, text]
    await measureLoad(contender, running, 'read', { connections: 32, requests: [small] })
    if (!isOwnText) {
      const large: Asked = ['resources/read', { uri: uriOf(folders.middle, largeName) }, '12345']
      await measureLoad(contender, running, '1 MiB', { connections: 8, requests: [large] })
    }
    if (templated !== undefined) {
      const request: Asked = ['resources/read', { uri: templated(folders.middle, one) }, text]
      await measureLoad(contender, running, 'template', { connections: 32, requests: [request] })
    }
    if (completed !== undefined) {
      const { template, variable } = completed(folders.middle)
      const typed = isOwnText ? '1' : 'f-0050'
      const argument = { name: variable, value: typed }
      const request: Asked = [
        ...(['completion/complete', { ref: { type: 'ref/resource', uri: template }, argument }] as const),
        isOwnText ? '1' : 'f-005012',
      ]
      await measureLoad(contender, running, 'completion', { connections: 32, requests: [request] })
    }
    note(name, 'memory after', running.memory())
  })
  if (lists)
    await serve(folders.small, async (running) => {
      const list: Asked = ['resources/list', {}, nameOf(99)]
      const reads = Array.from({ length: 9 }, (_, at): Asked => {
        return ['resources/read', { uri: uriOf(folders.small, nameOf(at + 50)) }, 'A line of a file']
      })
      await measureLoad(contender, running, 'mix', { connections: 50, requests: [list, ...reads] })
    })
  if (tells) await serve(folders.small, (running) => measureChanges(contender, running, folders.small))
  if (!lists) return
  await serve(folders.middle, (running) => measureList(contender, running, 'middle', folders.middle))
  await serve(folders.large, (running) => measureList(contender, running, 'large', folders.large))
}

try {
  // wrk prints its version with an exit code of 1, so only `error` shows that it is missing.
  if (spawnSync('wrk', ['-v']).error !== undefined) throw new Error('wrk is missing: apt-get install wrk')
  installPeers()
  progress('making 110,000 files')
  const folders = { small: makeFolder('small'), middle: makeFolder('middle'), large: makeFolder('large') }
  const all = (await contenders(folders.middle)).filter(({ name }) =>
    values.only.split(',').some((part) => name.includes(part)),
  )
  for (let turn = 0; turn < rounds; turn++)
    for (const [at] of all.entries()) {
      // Each round begins with another server.
      const contender = all[(at + turn) % all.length]
      if (contender === undefined) continue
      progress(`round ${turn + 1} of ${rounds}: ${contender.name}`)
      await round(contender, folders).catch((error: unknown) => {
        progress(`${contender.name}: ${error instanceof Error ? error.message : String(error)}`)
      })
    }
  print(all)
  if (values.chart !== undefined) writeFileSync(values.chart, drawChart(panelsOf(all)))
} finally {
  rmSync(temporary, { recursive: true, force: true })
}

/** Formats the median of a measure, with the spread of the rounds from 10 % on. `–`: the server has no such measure. */
function cell(server: string, measure: string, digits = 0): string {
  const found = measured.get(server)?.get(measure)
  if (found === undefined || found.length === 0) return '–'
  const middle = median(found)
  const spread = middle === 0 ? 0 : (Math.max(...found) - Math.min(...found)) / 2 / middle
  return `${fixed(middle, digits)}${spread < 0.1 ? '' : ` ±${fixed(spread * 100, 0)} %`}`
}

/** Formats the ratio of a measure to that of the first server. */
function ratio(first: string | undefined, server: string, measure: string): string {
  const [own, other] = [server, first].map((name) => measured.get(name ?? '')?.get(measure))
  if (own === undefined || other === undefined) return '–'
  return `${fixed(median(own) / median(other), 2)} ×`
}

function print(all: readonly Contender[]): void {
  const first = all[0]?.name
  const names = all.map(({ name }) => name)
  const say = (head: readonly string[], row: (name: string) => readonly string[]) =>
    console.log(
      `${table(
        head,
        names.map((name) => [name, ...row(name)]),
      )}\n`,
    )
  say(
    ['10,000 files', 'start to the first answer, ms', 'CPU, ms', 'memory then, MiB', 'memory after all, MiB'],
    (name) => [
      ...[cell(name, 'start ms'), cell(name, 'start cpu'), cell(name, 'start memory'), cell(name, 'memory after')],
    ],
  )
  say(
    ['list all', '10,000: ms', 'CPU, ms', 'to SDK 2', '100,000: ms', 'CPU, ms', 'to SDK 2', 'memory, MiB'],
    (name) => [
      ...[cell(name, 'list middle ms'), cell(name, 'list middle cpu'), ratio(first, name, 'list middle cpu')],
      ...[cell(name, 'list large ms'), cell(name, 'list large cpu'), ratio(first, name, 'list large cpu')],
      cell(name, 'list large memory'),
    ],
  )
  for (const [measure, title] of [
    ['read', 'read 1 KiB, 32 connections'],
    ['template', 'read by a template, 32 connections'],
    ['1 MiB', 'read 1 MiB, 8 connections'],
    ['completion', 'completion among 10,000, 32 connections'],
    ['mix', 'one list of 100 to nine reads, 50 connections'],
  ] as const)
    say([title, 'a second', 'to SDK 2', 'CPU, µs a request', 'to SDK 2', 'p50, ms', 'p99, ms'], (name) => [
      ...[cell(name, `${measure} per second`), ratio(first, name, `${measure} per second`)],
      ...[cell(name, `${measure} cpu`), ratio(first, name, `${measure} cpu`)],
      ...[cell(name, `${measure} p50`, 1), cell(name, `${measure} p99`, 1)],
    ])
  say([`${changes} changes of files, one client`, 'untold', 'told after, ms', 'CPU, µs a change'], (name) => [
    ...[cell(name, 'untold'), cell(name, 'told ms', 1), cell(name, 'told cpu')],
  ])
}

function panelsOf(all: readonly Contender[]): readonly Panel[] {
  const panel = (title: string, note: string, measure: string, unit = ''): Panel => ({
    title,
    note,
    bars: all.flatMap(({ name }) => {
      const found = measured.get(name)?.get(measure)
      if (found === undefined) return []
      const value = median(found)
      return [{ name, value, text: `${value < 10 ? fixed(value) : Math.round(value).toLocaleString('en')}${unit}` }]
    }),
  })
  return [
    panel('Read 1 KiB', 'Requests a second over 32 connections: longer is better', 'read per second'),
    panel('Read by a template', 'Requests a second over 32 connections: longer is better', 'template per second'),
    panel('Read 1 MiB', 'Requests a second over 8 connections: longer is better', '1 MiB per second'),
    panel('Complete among 10,000', 'Requests a second over 32 connections: longer is better', 'completion per second'),
    panel('One list to nine reads', 'Requests a second over 50 connections: longer is better', 'mix per second'),
    panel('List 100,000 resources', 'CPU of the server: shorter is better', 'list large cpu', ' ms'),
    panel('Start to the first answer', '10,000 files over HTTP: shorter is better', 'start ms', ' ms'),
    panel('Memory at the first answer', 'Shorter is better', 'start memory', ' MiB'),
  ]
}
