import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as isomorphic from 'isomorphic-git'
import type { Context, Provider } from '../src/core/provider.ts'
import { git } from '../src/providers/git/index.ts'
import { measureLarge } from './git-large.ts'
import { fixed, median, progress, table } from './support.ts'

// Measures a repository of 10,000 commits and 1,000 files: reading every file at HEAD, one after the other and all at once, and reading the
// whole log, with the provider, with git by hand (one `git cat-file --batch`, one `git log`), and with isomorphic-git. Every round opens
// the three anew, with empty caches and in another order; opening is not measured. Ratios are taken within a round, because other work on
// the machine slows all three. The argument is the number of rounds. With `large`, only repositories of very many refs and names are
// measured.

const commits = 10_000
const files = 1000
const onlyLarge = process.argv.includes('large')
const rounds = Number(process.argv.slice(2).find((word) => /^\d+$/.test(word)) ?? 25)
const largeRounds = Math.min(rounds, 5)
const context: Context = { principal: { id: 'bench', roles: [] }, signal: new AbortController().signal }

function makeRepository(dir: string): void {
  const paths = Array.from({ length: files }, (_, i) => `src/group-${i % 10}/folder-${i % 100}/file-${i}.ts`)
  const versions = paths.map((_, i) =>
    Array.from({ length: 400 }, (_, line) => `line ${line} of file ${i}: ${(line * i * 7919) % 65_537} and so on`),
  )
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', dir])
  const input = join(dir, 'fast-import')
  const out = fs.openSync(input, 'w')
  const blob = (path: string, lines: readonly string[]) => {
    const text = `${lines.join('\n')}\n`
    return `M 100644 inline ${path}\ndata ${Buffer.byteLength(text)}\n${text}\n`
  }
  for (let i = 0; i < commits; i++) {
    const message = `area ${i % 37}: change number ${i}\n\nWhy it was changed, in a sentence or two.\n`
    const who = `Author ${i % 50} <author${i % 50}@example.com> ${1_700_000_000 + i * 600} +0900`
    fs.writeSync(out, `commit refs/heads/main\nauthor ${who}\ncommitter ${who}\ndata ${message.length}\n${message}`)
    const changed = i === 0 ? paths.map((_, n) => n) : [(i * 7) % files, (i * 13) % files]
    for (const n of new Set(changed)) {
      const lines = versions[n]!
      if (i > 0) lines[(i * 31) % lines.length] = `changed in commit ${i}`
      fs.writeSync(out, blob(paths[n]!, lines))
    }
    fs.writeSync(out, '\n')
  }
  fs.closeSync(out)
  const from = fs.openSync(input, 'r')
  execFileSync('git', ['-C', dir, 'fast-import', '--quiet'], { stdio: [from, 'ignore', 'inherit'] })
  fs.closeSync(from)
  fs.rmSync(input)
  execFileSync('git', ['-C', dir, 'repack', '-a', '-d', '-q'])
}

interface File {
  readonly path: string
  readonly oid: string
}

function filesAtHead(dir: string): readonly File[] {
  const listed = execFileSync('git', ['-C', dir, 'ls-tree', '-r', 'HEAD'], { encoding: 'utf8', maxBuffer: 1e9 })
  return listed
    .trimEnd()
    .split('\n')
    .map((line) => ({ path: line.slice(line.indexOf('\t') + 1), oid: line.slice(12, 52) }))
}

/** One implementation, opened again for every round. Reads resolve to the number of characters, `log` to the number of commits. */
interface Reader {
  readonly readEach: () => Promise<number>
  readonly readAll: () => Promise<number>
  readonly log: () => Promise<number>
  readonly close: () => Promise<void>
}

/** Starts `git cat-file --batch`, with the least code that this task needs. */
function startCatFile(dir: string) {
  const child: ChildProcessWithoutNullStreams = spawn('git', ['-C', dir, 'cat-file', '--batch'])
  const waiting: ((text: string) => void)[] = []
  let held: Buffer = Buffer.alloc(0)
  child.stdout.on('data', (chunk: Buffer) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    for (;;) {
      const end = held.indexOf(10)
      if (end === -1) return
      const size = Number(held.toString('latin1', 0, end).split(' ')[2])
      if (held.length < end + size + 2) return
      const text = held.toString('utf8', end + 1, end + 1 + size)
      held = held.subarray(end + size + 2)
      waiting.shift()?.(text)
    }
  })
  return {
    read: (oid: string) =>
      new Promise<string>((resolve) => {
        waiting.push(resolve)
        child.stdin.write(`${oid}\n`)
      }),
    close: () => new Promise<void>((resolve) => child.once('close', () => resolve()).stdin.end()),
  }
}

async function openByHand(dir: string, all: readonly File[]): Promise<Reader> {
  const cat = startCatFile(dir)
  await cat.read(all[0]!.oid)
  return {
    readEach: async () => {
      let sum = 0
      for (const { oid } of all) sum += (await cat.read(oid)).length
      return sum
    },
    readAll: async () =>
      (await Promise.all(all.map(({ oid }) => cat.read(oid)))).reduce((sum, text) => sum + text.length, 0),
    log: async () => {
      const child = spawn('git', ['-C', dir, 'log', '-z', '--format=%H%n%cI%n%an%n%s', 'HEAD'])
      const chunks: Buffer[] = []
      child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
      await new Promise((resolve) => child.once('close', resolve))
      return Buffer.concat(chunks)
        .toString('utf8')
        .split('\0')
        .filter((record) => record !== '').length
    },
    close: cat.close,
  }
}

async function openProvider(dir: string, all: readonly File[]): Promise<Reader> {
  const provider: Provider = await git({ repository: dir })
  const read = async (path: string, params: Record<string, string> = {}) => {
    const [content] = await provider.read({ path, params: new Map(Object.entries(params)) }, context)
    return content !== undefined && 'text' in content ? content.text : ''
  }
  await read(`HEAD/${all[0]!.path}`)
  return {
    readEach: async () => {
      let sum = 0
      for (const { path } of all) sum += (await read(`HEAD/${path}`)).length
      return sum
    },
    readAll: async () =>
      (await Promise.all(all.map(({ path }) => read(`HEAD/${path}`)))).reduce((sum, text) => sum + text.length, 0),
    log: async () => (await read('log', { limit: String(commits) })).split('\n').length - 2,
    close: async () => provider.close?.(),
  }
}

async function openIsomorphic(dir: string, all: readonly File[]): Promise<Reader> {
  const repository = { fs, gitdir: dir, cache: {} }
  const oid = await isomorphic.resolveRef({ ...repository, ref: 'HEAD' })
  const read = async (filepath: string) =>
    Buffer.from((await isomorphic.readBlob({ ...repository, oid, filepath })).blob).toString('utf8').length
  await read(all[0]!.path)
  return {
    readEach: async () => {
      let sum = 0
      for (const { path } of all) sum += await read(path)
      return sum
    },
    readAll: async () =>
      (await Promise.all(all.map(({ path }) => read(path)))).reduce((sum, length) => sum + length, 0),
    log: async () => (await isomorphic.log({ ...repository, ref: 'HEAD', depth: commits })).length,
    close: async () => {},
  }
}

const makers = { hand: openByHand, provider: openProvider, isomorphic: openIsomorphic } as const
type Name = keyof typeof makers
type Task = 'readEach' | 'readAll' | 'log'
const tasks: Readonly<Record<Task, string>> = {
  readEach: `read ${files} blobs, one after the other`,
  readAll: `read ${files} blobs, all at once`,
  log: `log of ${commits} commits`,
}

async function time(
  name: Name,
  task: Task,
  dir: string,
  all: readonly File[],
): Promise<{ ms: number; answer: number }> {
  const reader = await makers[name](dir, all)
  try {
    const start = performance.now()
    const answer = await reader[task]()
    return { ms: performance.now() - start, answer }
  } finally {
    await reader.close()
  }
}

function machine(): string {
  return `${execFileSync('git', ['--version'], { encoding: 'utf8' }).trim()}, Node ${process.version}`
}

async function measureReading(folder: string): Promise<void> {
  progress(`making ${commits} commits …`)
  const dir = join(folder, 'repository.git')
  makeRepository(dir)
  const all = filesAtHead(dir)
  const rows: string[][] = []
  for (const task of Object.keys(tasks) as Task[]) {
    progress(`${tasks[task]} …`)
    const times: Record<Name, number[]> = { hand: [], provider: [], isomorphic: [] }
    let expected: number | undefined
    for (let round = 0; round < rounds; round++) {
      // isomorphic-git is slow, so it runs only in every sixth round.
      const names = (Object.keys(makers) as Name[]).filter((name) => name !== 'isomorphic' || round % 6 === 0)
      for (let turn = 0; turn < names.length; turn++) {
        const name = names[(turn + round) % names.length]!
        const { ms, answer } = await time(name, task, dir, all)
        expected ??= answer
        if (answer !== expected) throw new Error(`${name} answers ${answer} to ${task}, not ${expected}`)
        times[name].push(ms)
      }
    }
    const ratio = (name: Name, every: number) =>
      `${fixed(median(times[name].map((ms, i) => ms / times.hand[i * every]!)), 2)} ×`
    rows.push([
      tasks[task],
      fixed(median(times.hand)),
      fixed(median(times.provider)),
      ratio('provider', 1),
      fixed(median(times.isomorphic)),
      ratio('isomorphic', 6),
    ])
  }
  const head = ['', 'git by hand, ms', 'provider, ms', 'to git by hand', 'isomorphic-git, ms', 'to git by hand']
  console.log(`${machine()}; medians of ${rounds} rounds, ratios within each round\n`)
  console.log(table(head, rows))
}

const folder = fs.mkdtempSync(join(tmpdir(), 'hikidashi-bench-git-'))
try {
  if (!onlyLarge) await measureReading(folder)
  const large = await measureLarge(folder, largeRounds)
  console.log(`\n${machine()}; medians of ${largeRounds} rounds\n\n${large}`)
} finally {
  fs.rmSync(folder, { recursive: true, force: true })
}
