import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { hikidashi } from '../clients/served.ts'
import { chatCompletions, type Dialect, generateContent, responses, startStandIn, type ToolCall } from './stand-in.ts'

/**
 * Tests hosts that start the server themselves: `hikidashi add HOST DIR` runs in an empty home, then the host's command lists its servers,
 * and the host's client lists, searches and reads, as a fake model requests. Its hook gives the prompt a context, which reaches the model.
 */

/** A word that occurs in only one file of the folder. */
const rareWord = 'quokkaberry'
/** A prompt with which a document of the folder helps. */
const prompt = `Which shelf holds ${rareWord} tea?`
const document = `# Stock\n\nOnly one shelf holds ${rareWord} tea.\n`

/** Time-out of one command of a host, in milliseconds. */
const commandTimeoutMs = 120_000

export interface Host {
  /** The name of the host for `hikidashi add`. */
  readonly name: string
  /** The npm package, whose exact version is in `../package.json`. */
  readonly dependency: string
  readonly dialect: Dialect
  /** Whether the program of the host is a script for Node. */
  readonly isScript: boolean
  /** The arguments that list the servers, and a pattern of the output if our server is among them. */
  readonly list: readonly string[]
  readonly says: RegExp
  /** Configures the fake model in the host's home. Resolves to the arguments and variables with which the host runs a task unattended. */
  setUp(home: string, url: string): Promise<{ readonly args: readonly string[]; readonly env?: NodeJS.ProcessEnv }>
  /** The calls with which the model lists, searches and reads. */
  calls(folder: string): readonly ToolCall[]
}

export interface HostOutcome {
  readonly host: Host
  readonly faults: readonly string[]
}

const uriIn = (folder: string) => `file://${folder}/docs/stock.md`
const holds = `one shelf holds ${rareWord} tea`
/** How long a task is begun again and again to see a context of the hook, in milliseconds. */
const hookPatienceMs = 180_000
const finds = (output: string) => output.includes('stock.md')

/** Calls with the tools of the server, for hosts whose models have no tools for resources. */
const byTools = (folder: string): readonly ToolCall[] => [
  { name: 'list_resources', arguments: {} },
  { name: 'search_resources', arguments: { query: rareWord }, isEnough: finds },
  { name: 'hikidashi_read_resource', arguments: { uri: uriIn(folder) } },
]

export const hosts: readonly Host[] = [
  {
    name: 'codex',
    dependency: '@openai/codex',
    dialect: responses,
    isScript: true,
    list: ['mcp', 'list'],
    says: /^hikidashi .*enabled/m,
    setUp: async (home, url) => {
      const file = join(home, '.codex/config.toml')
      // TOML requires keys without a table before the tables.
      const settings = [
        ...['model = "stand-in"', 'model_provider = "stand-in"', 'approval_policy = "never"'],
        ...['[model_providers.stand-in]', 'name = "Stand-in"', `base_url = "${url}/v1"`, 'wire_api = "responses"', ''],
      ]
      await writeFile(file, settings.join('\n') + (await readFile(file, 'utf8')))
      return { args: ['exec', '--skip-git-repo-check', '--dangerously-bypass-hook-trust', prompt] }
    },
    calls: (folder) => [
      { name: 'list_mcp_resources', arguments: { server: 'hikidashi' } },
      {
        ...{ name: 'read_mcp_resource', isEnough: finds },
        arguments: { server: 'hikidashi', uri: `search://shop?q=${rareWord}` },
      },
      { name: 'read_mcp_resource', arguments: { server: 'hikidashi', uri: uriIn(folder) } },
    ],
  },
  {
    name: 'opencode',
    dependency: 'opencode-linux-x64',
    dialect: chatCompletions,
    isScript: false,
    list: ['mcp', 'list'],
    says: /hikidashi[^\n]*connected/,
    setUp: async (home, url) => {
      const file = join(home, '.config/opencode/opencode.json')
      const settings = JSON.parse(await readFile(file, 'utf8')) as object
      const provider = {
        ...{ npm: '@ai-sdk/openai-compatible', name: 'Stand-in' },
        options: { baseURL: `${url}/v1`, apiKey: 'none' },
        models: { model: { name: 'model', tool_call: true } },
      }
      const own = { provider: { 'stand-in': provider }, autoupdate: false, share: 'disabled' }
      await writeFile(file, JSON.stringify({ ...settings, ...own }))
      const env = { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' }
      return { args: ['run', '--model', 'stand-in/model', prompt], env }
    },
    calls: byTools,
  },
  {
    name: 'gemini-cli',
    dependency: '@google/gemini-cli',
    dialect: generateContent,
    isScript: true,
    list: ['mcp', 'list'],
    says: /hikidashi: .*Connected/,
    setUp: async (home, url) => {
      const file = join(home, '.gemini/settings.json')
      const settings = JSON.parse(await readFile(file, 'utf8')) as object
      const own = { security: { auth: { selectedType: 'gemini-api-key' } }, privacy: { usageStatisticsEnabled: false } }
      await writeFile(file, JSON.stringify({ ...settings, ...own }))
      const env = { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: url }
      return { args: ['-p', prompt, '--approval-mode', 'yolo', '-m', 'gemini-2.5-flash'], env }
    },
    calls: byTools,
  },
]

/** Runs one host after the other. Calls `tell` with each outcome as soon as it is known. */
export async function runHosts(node: string, tell: (outcome: HostOutcome) => void): Promise<readonly HostOutcome[]> {
  const outcomes: HostOutcome[] = []
  for (const host of hosts.filter(isInstalled)) {
    const faults: string[] = []
    await runHost(node, host, faults).catch((error: unknown) => {
      faults.push(error instanceof Error ? error.message : String(error))
    })
    tell({ host, faults })
    outcomes.push({ host, faults })
  }
  return outcomes
}

/** Whether a host is installed. A host that is a binary for one platform is not installed on others. */
function isInstalled({ dependency, isScript }: Host): boolean {
  return isScript || existsSync(fileURLToPath(new URL(`../node_modules/${dependency}/package.json`, import.meta.url)))
}

async function runHost(node: string, host: Host, faults: string[]): Promise<void> {
  const parent = await mkdtemp(join(tmpdir(), 'hikidashi-hosts-'))
  try {
    const [home, folder] = [join(parent, 'home'), join(parent, 'shop')]
    await mkdir(home, { recursive: true })
    await mkdir(join(folder, 'docs'), { recursive: true })
    await writeFile(join(folder, 'README.md'), '# The shop\n\nIt sells tea.\n')
    await writeFile(join(folder, 'docs/stock.md'), document)
    const env = { PATH: process.env.PATH ?? '', HOME: home, LANG: 'C.UTF-8', GEMINI_CLI_TRUST_WORKSPACE: 'true' }
    const run = (command: readonly string[], more: NodeJS.ProcessEnv = {}) =>
      runCommand(command, { cwd: folder, env: { ...env, ...more } })
    await run([process.execPath, hikidashi, 'add', host.name, folder, '--hook'])
    // Without an index, the hook is silent.
    await run([process.execPath, hikidashi, 'search', rareWord])
    const program = await programOf(host, node)

    const calls = host.calls(folder)
    const model = await startStandIn(host.dialect, calls)
    try {
      const { args, env: own } = await host.setUp(home, model.url)
      const listed = await run([...program, ...host.list], own)
      if (!host.says.test(listed)) faults.push(`it does not list the server: ${listed.trim().slice(-300)}`)
      const said = await run([...program, ...args], own)
      const [list = '', search = '', read = ''] = model.outputs()
      if (!list.includes('hikidashi://overview')) faults.push(`the list has no overview: ${list.slice(0, 300)}`)
      if (!list.includes(uriIn(folder))) faults.push(`the list has not every file: ${list.slice(0, 300)}`)
      if (!finds(search)) faults.push(`the search finds nothing: ${search.slice(0, 300)}`)
      if (!read.includes(holds)) faults.push(`what is read is not there: ${read.slice(0, 300)}`)
      // The hook is silent rather than late, which the machine may be.
      const hasContext = () => model.begun().some((asked) => asked.includes(holds))
      for (const end = Date.now() + hookPatienceMs; !hasContext() && Date.now() < end; )
        await run([...program, ...args], own)
      if (!hasContext()) faults.push('the prompt has no context from the hook')
      if (faults.length > 0) faults.push(`it offered ${model.offered().join(' ')}; it said ${said.slice(-500)}`)
    } finally {
      model.close()
    }
  } finally {
    await rm(parent, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Returns the command of a host, from the installation in the parent folder. */
async function programOf({ name, dependency, isScript }: Host, node: string): Promise<readonly string[]> {
  const folder = fileURLToPath(new URL(`../node_modules/${dependency}/`, import.meta.url))
  const { bin } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    readonly bin?: Readonly<Record<string, string>>
  }
  if (!isScript) return [join(folder, 'bin', name)]
  const [script = ''] = Object.values(bin ?? {})
  return [node, join(folder, script)]
}

/** Resolves to the output of a command on both streams. Rejects if the command fails or times out. */
function runCommand([file = '', ...args]: readonly string[], options: { cwd: string; env: NodeJS.ProcessEnv }) {
  return new Promise<string>((resolve, reject) => {
    const child = execFile(file, args, { ...options, timeout: commandTimeoutMs }, (error, out, err) =>
      error === null ? resolve(out + err) : reject(new Error(`${error.message}\n${out}\n${err}`.slice(0, 1500))),
    )
    child.stdin?.end()
  })
}
