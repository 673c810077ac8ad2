/**
 * Whether a list costs the same for each entry, and a read the same, however much there is: folders of 1,000, 100,000 and 1,000,000 files, and 10 and 10,000
 * mounts, over stdio, in turns within one run: `npx tsx bench/scale.ts [ROUNDS] [FILES...]`, after a build. Linux only: it reads `/proc`.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { cpuMs, meta, type Program, peakMib, startProgram } from './program.ts'
import { fixed, median, progress, table } from './support.ts'

const [rounds = 3, ...sizes] = process.argv.slice(2).map(Number)
const folderSizes = sizes.length > 0 ? sizes : [1_000, 100_000, 1_000_000]
const mountCounts = [10, 10_000]
/** Each round lists at least so many entries of a folder to warm up, and as many to measure, so that the steps of `/proc` (10 ms) do not count. */
const minEntries = 500_000
const [reads, inFlight] = [10_000, 32]
const temporary = mkdtempSync(join(tmpdir(), 'hikidashi-bench-scale-'))
const env = { ...process.env, XDG_STATE_HOME: join(temporary, '.state') }
const main = resolve(import.meta.dirname, '../dist/cli/main.js')

interface Page {
  readonly result: { readonly resources: readonly unknown[]; readonly nextCursor?: string }
}

function makeFolder(count: number): string {
  const folder = join(temporary, `files-${count}`)
  mkdirSync(folder)
  for (let at = 0; at < count; at++) writeFileSync(join(folder, `f-${String(at).padStart(7, '0')}.txt`), `${at}\n`)
  return folder
}

function makeMounts(count: number): string {
  const mounts: Record<string, { provider: string; root: string }> = {}
  for (let at = 0; at < count; at++) {
    const root = join(temporary, `mounts-${count}`, `m-${at}`)
    mkdirSync(root, { recursive: true })
    writeFileSync(join(root, 'small.txt'), `${'A line of a file that is served. '.repeat(31)}\n`)
    mounts[pathToFileURL(root).href] = { provider: 'files', root }
  }
  const config = join(temporary, `mounts-${count}.json`)
  writeFileSync(config, JSON.stringify({ mounts }))
  return config
}

async function listAll(program: Program): Promise<number> {
  let entries = 0
  for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
    const text = await program.ask('resources/list', { ...(cursor === undefined ? {} : { cursor }), _meta: meta })
    const { result } = JSON.parse(text) as Page
    entries += result.resources.length
    cursor = result.nextCursor
  }
  return entries
}

/** Lists all of the folder until there were enough entries. Returns their number. */
async function listEntries(program: Program): Promise<number> {
  let entries = 0
  while (entries < minEntries) entries += await listAll(program)
  return entries
}

async function readMany(program: Program, count: number): Promise<void> {
  let left = reads
  const next = async () => {
    while (left-- > 0) {
      // The same ten mounts in both runs, spread over all of them.
      const at = ((left % 10) * count) / 10
      const uri = pathToFileURL(join(temporary, `mounts-${count}`, `m-${at}`, 'small.txt')).href
      const line = await program.ask('resources/read', { uri, _meta: meta })
      if (line.length < 1000) throw new Error(`An answer: ${line.slice(0, 300)}`)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, next))
}

const figures = new Map<string, number[]>()
const note = (name: string, value: number) => figures.set(name, [...(figures.get(name) ?? []), value])
const of = (name: string, digits = 2) => fixed(median(figures.get(name) ?? []), digits)

try {
  const folders = folderSizes.map((count) => {
    progress(`making ${count} files`)
    return { count, folder: makeFolder(count) }
  })
  for (let round = 0; round < rounds; round++)
    for (const { count, folder } of folders) {
      progress(`round ${round + 1} of ${rounds}: ${count} files`)
      const program = startProgram([main, 'serve', folder, '--only', 'files', '--stdio'], env)
      // A client listens for changes, as hosts do: so the folder is watched.
      void program.ask('subscriptions/listen', { notifications: { resourcesListChanged: true }, _meta: meta })
      const cold = performance.now()
      const found = await listAll(program)
      // The overview of the server is an entry too.
      if (found !== count + 1) throw new Error(`The list has ${found} of ${count} entries.`)
      note(`${count} cold`, performance.now() - cold)
      // V8 compiles what runs often: each size lists as many entries before it is measured.
      await listEntries(program)
      const before = cpuMs(program)
      const entries = await listEntries(program)
      note(`${count} cpu`, ((cpuMs(program) - before) * 1000) / entries)
      note(`${count} peak`, peakMib(program))
      await program.close()
    }
  console.log(
    table(
      [
        'files in one folder',
        'first list of all, ms',
        'later ones: CPU, µs an entry',
        'to the first row',
        'peak memory, MiB',
      ],
      folders.map(({ count }) => [
        count,
        of(`${count} cold`, 0),
        of(`${count} cpu`),
        `${fixed(median(figures.get(`${count} cpu`) ?? []) / median(figures.get(`${folderSizes[0]} cpu`) ?? []), 2)} ×`,
        of(`${count} peak`, 0),
      ]),
    ),
  )
  const configs = mountCounts.map((count) => ({ count, config: makeMounts(count) }))
  for (let round = 0; round < rounds; round++)
    for (const { count, config } of configs) {
      progress(`round ${round + 1} of ${rounds}: ${count} mounts`)
      const begun = performance.now()
      const program = startProgram([main, 'serve', '--config', config, '--stdio'], env)
      await readMany(program, count)
      note(`${count} start`, performance.now() - begun)
      const before = cpuMs(program)
      await readMany(program, count)
      note(`${count} read`, ((cpuMs(program) - before) * 1000) / reads)
      note(`${count} memory`, peakMib(program))
      await program.close()
    }
  console.log()
  console.log(
    table(
      [
        'mounts',
        `start and the first ${reads} reads, ms`,
        'later reads: CPU, µs',
        'to the first row',
        'peak memory, MiB',
      ],
      configs.map(({ count }) => [
        count,
        of(`${count} start`, 0),
        of(`${count} read`),
        `${fixed(median(figures.get(`${count} read`) ?? []) / median(figures.get('10 read') ?? []), 2)} ×`,
        of(`${count} memory`, 0),
      ]),
    ),
  )
} finally {
  rmSync(temporary, { recursive: true, force: true })
}
