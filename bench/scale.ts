/**
 * `npx tsx bench/scale.ts [ROUNDS] [FILES...]`, after a build: tests whether the costs of a listed entry and of a read are independent of
 * the size, with folders of 1,000, 100,000 and 1,000,000 files, and with 10 and 10,000 mounts, in turns. Linux only: it reads `/proc`.
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
/** Minimum number of entries that a round lists to warm up, and again to measure: many, because CPU time comes in steps of 10 ms. */
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

/** Lists the whole folder repeatedly until at least `minEntries` entries were listed. Returns their number. */
async function listEntries(program: Program): Promise<number> {
  let entries = 0
  while (entries < minEntries) entries += await listAll(program)
  return entries
}

async function readMany(program: Program, count: number): Promise<void> {
  let left = reads
  const next = async () => {
    while (left-- > 0) {
      // Both runs read ten mounts, spread evenly over all mounts.
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
      // Listen for changes, as hosts do, so that the server watches the folder.
      void program.ask('subscriptions/listen', { notifications: { resourcesListChanged: true }, _meta: meta })
      const cold = performance.now()
      const found = await listAll(program)
      // The list also contains the overview of the server.
      if (found !== count + 1) throw new Error(`The list has ${found} of ${count} entries.`)
      note(`${count} cold`, performance.now() - cold)
      // Warm up with as many entries for each size, because V8 compiles frequently used code.
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
