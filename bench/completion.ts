import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compileAccess } from '../src/core/access.ts'
import { createCatalog } from '../src/core/catalog.ts'
import type { Provider } from '../src/core/provider.ts'
import type { View } from '../src/core/view.ts'
import { files } from '../src/providers/files/index.ts'
import { git } from '../src/providers/git/index.ts'
import { prompts } from '../src/providers/prompts/index.ts'
import { memory } from '../test/support/memory.ts'
import { count, fixed, makeFlat, makeTree, progress, table } from './support.ts'

// Measures the completion of a path among 100,000: files in one folder, files in a tree, files of a commit, and a source with a sorted
// snapshot. Each with everything visible, and with a rule that hides every tenth name. The argument is the number of rounds.

const rounds = Number(process.argv[2] ?? 50)

interface Case {
  readonly source: string
  readonly provider: Provider
  /** The template whose variable is completed. */
  readonly template: string
  readonly name: string
  readonly filled?: Readonly<Record<string, string>>
  readonly typed: readonly (readonly [what: string, value: string])[]
}

function makeRepository(dir: string): void {
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', dir])
  const who = 'Author <author@example.com> 1700000000 +0000'
  const input = [`commit refs/heads/main\nauthor ${who}\ncommitter ${who}\ndata 1\nx\n`]
  for (let i = 0; i < count; i++) {
    const path = `group-${i % 10}/folder-${String(Math.floor(i / 100)).padStart(4, '0')}/file-${String(i % 100).padStart(3, '0')}.md`
    input.push(`M 100644 inline ${path}\ndata 1\nx\n`)
  }
  for (let i = 0; i < 10_000; i++) input.push(`\nreset refs/tags/v${i}\nfrom refs/heads/main\n`)
  execFileSync('git', ['-C', dir, 'fast-import', '--quiet'], {
    input: `${input.join('')}\n`,
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  execFileSync('git', ['-C', dir, 'pack-refs', '--all'])
}

const quantile = (sorted: readonly number[], q: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN

async function measureCase(view: View, address: string, { template, name, filled = {}, ...one }: Case, value: string) {
  const uriTemplate = `${address}/${template}`
  const request = { uriTemplate, argument: { name, value }, arguments: new Map(Object.entries(filled)) }
  const begun = performance.now()
  const first = await view.complete(request)
  const cold = performance.now() - begun
  const times: number[] = []
  for (let i = 0; i < rounds; i++) {
    const start = performance.now()
    const again = await view.complete(request)
    times.push(performance.now() - start)
    if (again.values.length !== first.values.length) throw new Error(`${one.source} answers differently`)
  }
  times.sort((a, b) => a - b)
  return { values: first.values.length, cold, p50: quantile(times, 0.5), p95: quantile(times, 0.95) }
}

const folder = fs.mkdtempSync(join(tmpdir(), 'hikidashi-bench-'))
const rows: (string | number)[][] = []
try {
  progress(`making ${count} files twice, and a repository …`)
  makeFlat(join(folder, 'flat'))
  makeTree(join(folder, 'tree'))
  makeRepository(join(folder, 'git'))
  const names = Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`file-${String(i).padStart(6, '0')}.txt`, '']),
  )
  const snapshot = memory(names, [{ template: '{+path}', name: 'Files' }])
  const flat = [
    ['nothing', ''],
    ['a beginning', 'file-05'],
    ['a whole name', 'file-099999.txt'],
    ['what is not there', 'file-x'],
  ] as const
  const tree = [
    ['nothing', ''],
    ['a folder of 100 folders', 'group-5/'],
    ['a beginning', 'group-5/folder-0005/file-05'],
    ['what is not there', 'group-5/folder-0005/x'],
  ] as const
  const repository = await git({ repository: join(folder, 'git') })
  const cases: readonly Case[] = [
    {
      source: 'files, one folder',
      provider: await files({ root: join(folder, 'flat') }),
      template: '{+path}',
      name: 'path',
      typed: flat,
    },
    {
      source: 'files, a tree',
      provider: await files({ root: join(folder, 'tree') }),
      template: '{+path}',
      name: 'path',
      typed: tree,
    },
    {
      source: 'git, a tree',
      provider: repository,
      template: '{+ref}/{+path}',
      name: 'path',
      filled: { ref: 'main' },
      typed: tree,
    },
    {
      source: 'git, 10,000 tags',
      provider: repository,
      template: '{+ref}/{+path}',
      name: 'ref',
      typed: [
        ['nothing', ''],
        ['a beginning', 'v99'],
      ],
    },
    { source: 'a snapshot', provider: prompts({ source: snapshot }), template: '{+path}', name: 'path', typed: flat },
  ]
  for (const one of cases) {
    for (const [who, access] of [
      ['everything', undefined],
      ['nine of ten', compileAccess([{ allow: ['*'] }, { deny: ['*'], match: ['**/*7.txt', '**/*7.md'] }])],
    ] as const) {
      const address = 'bench://source'
      const mount = { address, provider: { ...one.provider, close: async () => {} } }
      const catalog = createCatalog({ mounts: [access === undefined ? mount : { ...mount, access }] })
      const view = catalog.view({ id: 'bench', roles: [] })
      for (const [what, value] of one.typed) {
        progress(`${one.source}, ${who}: ${what} …`)
        const { values, cold, p50, p95 } = await measureCase(view, address, one, value)
        rows.push([one.source, who, what, values, ...[cold, p50, p95].map((ms) => fixed(ms, 2))])
      }
      await catalog.close()
    }
  }
  for (const { provider } of cases) await provider.close?.()
} finally {
  fs.rmSync(folder, { recursive: true })
}
process.stdout.write(`${table(['source', 'visible', 'typed', 'values', 'first, ms', 'p50, ms', 'p95, ms'], rows)}\n`)
