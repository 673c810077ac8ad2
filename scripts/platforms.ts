/** Makes the table of docs/platforms.md from results: `npx tsx scripts/platforms.ts [WINDOWS.json PORTABLE.json]`, after a build. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { installNode, installPackage } from './nodes.ts'

interface Result {
  readonly name: string
  readonly fault?: string
  /** The ability that the system lacks even without hikidashi. */
  readonly wine?: string
}

/** The results of vitest's reporter `json`. */
interface TestReport {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

const root = resolve(import.meta.dirname, '..')
const page = join(root, 'docs/platforms.md')

/** Checks that fail by design, with what a user sees instead, by the system of the column. */
const known: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Deno: {
    tree: 'all but SQLite',
    'links and junctions out of the folder are absent': 'all but SQLite',
    check: 'all but SQLite',
    SQLite: 'no: the error says so',
    doctor: 'all but SQLite',
  },
}

/** The test files of the portable mode that show a feature on macOS. */
const portable: Readonly<Record<string, readonly string[]>> = {
  read: ['unit/files-compositions', 'attack/files-spellings'],
  watch: ['unit/files-watch-tree'],
  'a file replaced by a rename while it is served': ['attack/files-races'],
  'links and junctions out of the folder are absent': ['attack/files-links'],
  'a name that the system refuses is left out, with a warning': ['unit/files-faults'],
}

/** Drives every command in a runtime. */
async function drive(program: string, args: readonly string[], installed: string): Promise<readonly Result[]> {
  const report = join(installed, 'report.json')
  rmSync(report, { force: true })
  const script = join(import.meta.dirname, 'platforms/drive.mjs')
  const child = spawn(program, [...args, script, installed, report], {
    cwd: installed,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  await once(child, 'exit')
  return JSON.parse(readFileSync(report, 'utf8')) as readonly Result[]
}

/** Returns the text of a cell. @throws Error for a failure without a known reason. */
function cell(system: string, result: Result | undefined): string {
  if (result === undefined) return '–'
  if (result.fault === undefined) return 'works'
  if (result.wine !== undefined) return 'not tried'
  const said = known[system]?.[result.name]
  if (said === undefined) throw new Error(`${system}: ${result.name} fails.\n${result.fault}`)
  return said
}

/** Returns the cell of macOS: only what tests of the portable mode show. */
function portableCell(name: string, report: TestReport | undefined): string {
  const files = (report?.testResults ?? []).filter(({ name: file }) =>
    (portable[name] ?? []).some((part) => file.endsWith(`${part}.test.ts`)),
  )
  const tests = files.flatMap(({ assertionResults }) => assertionResults)
  const failed = tests.filter(({ status }) => status === 'failed').length
  if (failed > 0) throw new Error(`${failed} tests of the portable mode fail: ${name}.`)
  const passed = tests.filter(({ status }) => status === 'passed').length
  return passed === 0 ? '' : `${passed} tests`
}

/** Returns a sentence about what works everywhere, and the table of the rest. */
function makeTable(
  runs: Readonly<Record<string, readonly Result[]>>,
  names: readonly string[],
  tests: TestReport | undefined,
): string {
  const columns = Object.keys(runs)
  const rows = names.map((name) => ({
    name,
    cells: columns.map((system) =>
      cell(
        system,
        runs[system]?.find((result) => result.name === name),
      ),
    ),
    mac: portableCell(name, tests),
  }))
  const isEverywhere = ({ cells, mac }: (typeof rows)[number]) => mac === '' && cells.every((one) => one === 'works')
  const everywhere = rows.filter(isEverywhere).map(({ name }) => name)
  const onWindows = rows.filter(({ cells }) =>
    columns.every((system, at) => cells[at] === (system === 'Windows' ? 'works' : '–')),
  )
  const isInTable = (row: (typeof rows)[number]) => !isEverywhere(row) && !onWindows.includes(row)
  const lines = rows.filter(isInTable).map(({ name, cells, mac }) => [name, ...cells, mac || '–'])
  const head = ['', ...columns, 'macOS']
  const table = [head, head.map(() => '---'), ...lines].map((row) => `|${row.join('|')}|`)
  const only = onWindows.map(({ name }) => name).join('; ')
  const sentences = [
    `These work in ${columns.join(', ')}: ${everywhere.join('; ')}.`,
    `These concern Windows only, and work: ${only}.`,
  ]
  return [...sentences, table.join('\n')].join('\n\n')
}

async function main(): Promise<void> {
  const [windowsFile, portableFile] = process.argv.slice(2)
  const read = (file: string | undefined) => (file === undefined ? undefined : JSON.parse(readFileSync(file, 'utf8')))
  const windows = (read(windowsFile) ?? []) as readonly Result[]
  const tests = read(portableFile) as TestReport | undefined
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-platforms-'))
  try {
    const installed = join(folder, 'in stalled')
    mkdirSync(installed)
    for (const name of ['dist', 'package.json', 'config.schema.json'])
      cpSync(join(root, name), join(installed, name), { recursive: true })
    const runs: Record<string, readonly Result[]> = {}
    for (const version of ['22', '24', '26'])
      runs[`Node ${version}`] = await drive(await installNode(version), [], installed)
    runs.Windows = windows
    const [bun, deno] = [await installPackage('bun'), await installPackage('deno')]
    runs.Bun = await drive(bun, [], installed)
    runs.Deno = await drive(deno, ['run', '--allow-all', '--no-config', '--quiet'], installed)
    const names = [
      ...new Set([
        ...Object.values(runs)
          .flat()
          .map(({ name }) => name),
        ...Object.keys(portable),
      ]),
    ]
    const table = makeTable(runs, names, tests)
    const text = readFileSync(page, 'utf8')
    const [before, , after] = text.split(/<!-- \/?results -->\n/)
    writeFileSync(page, [before, `<!-- results -->\n${table}\n<!-- /results -->\n`, after].join(''))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

await main()
