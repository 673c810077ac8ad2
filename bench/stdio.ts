/**
 * Measures reads over stdio, 32 in flight, beside a bare program that answers each line with the same text, in turns within one run:
 * `npx tsx bench/stdio.ts [ROUNDS]`, after a build. Linux only: it reads `/proc`.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { cpuMs, meta, type Program, peakMib, startProgram } from './program.ts'
import { fixed, median, progress, table } from './support.ts'

const rounds = Number(process.argv[2] ?? 5)
const [inFlight, smallReads, warmReads, largeReads] = [32, 20_000, 30_000, 32]
const folder = mkdtempSync(join(tmpdir(), 'hikidashi-bench-stdio-'))
writeFileSync(join(folder, 'small.txt'), `${'A line of a file that is served. '.repeat(31)}\n`)
writeFileSync(join(folder, 'large.txt'), 'One line.\n'.repeat(104_857))
const env = { ...process.env, XDG_STATE_HOME: join(folder, '.state') }

/** The bare program: it answers each request with one line that contains the id of the request. */
const bare = `
const { readFileSync } = require('node:fs')
const answers = new Map()
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, params = {} } = JSON.parse(line)
  const { uri } = params
  if (uri !== undefined && !answers.has(uri)) answers.set(uri, readFileSync(new URL(uri), 'utf8'))
  const contents = uri === undefined ? [] : [{ uri, mimeType: 'text/plain', text: answers.get(uri) }]
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result: { contents } }) + '\\n')
})`

const programs = {
  bare: ['-e', bare],
  hikidashi: [resolve(import.meta.dirname, '../dist/cli/main.js'), 'serve', folder, '--only', 'files', '--stdio'],
} as const

async function readMany(program: Program, name: string, count: number): Promise<void> {
  const uri = pathToFileURL(join(folder, name)).href
  const bytes = readFileSync(join(folder, name)).length
  let left = count
  const next = async () => {
    while (left-- > 0) {
      const line = await program.ask('resources/read', { uri, _meta: meta })
      if (line.length < bytes) throw new Error(`An answer has ${line.length} characters: ${line.slice(0, 300)}`)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, next))
}

const found = new Map<string, { cpu: number[]; perSecond: number[]; peak: number[] }>()
try {
  for (let round = 0; round < rounds; round++)
    for (const [name, args] of Object.entries(programs)) {
      progress(`round ${round + 1} of ${rounds}: ${name}`)
      const program = startProgram(args, env)
      const figures = found.get(name) ?? { cpu: [], perSecond: [], peak: [] }
      found.set(name, figures)
      await readMany(program, 'small.txt', warmReads)
      const [cpu, begun] = [cpuMs(program), performance.now()]
      await readMany(program, 'small.txt', smallReads)
      figures.cpu.push(((cpuMs(program) - cpu) * 1000) / smallReads)
      figures.perSecond.push((smallReads * 1000) / (performance.now() - begun))
      await readMany(program, 'large.txt', largeReads)
      figures.peak.push(peakMib(program))
      await program.close()
    }
  const base = median(found.get('bare')?.cpu ?? [])
  console.log(
    table(
      [
        '1 KiB, 32 in flight',
        'CPU, µs a read',
        'to bare',
        'reads a second',
        'peak after 32 reads of 1 MiB at once, MiB',
      ],
      [...found].map(([name, { cpu, perSecond, peak }]) => [
        name,
        fixed(median(cpu), 0),
        `${fixed(median(cpu) / base, 2)} ×`,
        fixed(median(perSecond), 0),
        fixed(median(peak), 0),
      ]),
    ),
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}
