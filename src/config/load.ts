import { readFile } from 'node:fs/promises'
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { isLoopback } from '../core/host.ts'
import { parseDocument } from './document.ts'
import { listen as listenSchema } from './fields.ts'
import { addressFindings, findingsOf } from './findings.ts'
import { checkFolder, resolveFolder } from './folder.ts'
import { type ConfigProblem, type Finding, locate } from './problem.ts'
import { filesShape } from './providers/files.ts'
import { gitShape } from './providers/git.ts'
import { type ConfigFile, configSchema } from './schema.ts'
import { resolveSecret } from './secret.ts'
import { describeIssue } from './words.ts'

/** A configuration that was found good: it can be built. */
export interface Config extends Omit<ConfigFile, 'cursorSecret' | '$schema'> {
  /** Its absolute path. */
  readonly file: string
  /** The folder that it is in: relative paths start there. */
  readonly folder: string
  readonly cursorSecret?: string
}

export type LoadResult = { readonly config: Config } | { readonly problems: readonly ConfigProblem[] }

type Env = Readonly<Record<string, string | undefined>>

export interface LoadOptions {
  /** Where secrets of the form `{ "env": … }` are looked up. */
  readonly env?: Env
}

/** The shortest secret that is taken, in bytes: half of the key of HMAC-SHA-256. */
const minSecret = 16

/** Loads a configuration file. It answers with every problem that it found, in the order of the file, or with none. */
export async function loadConfig(file: string, { env = process.env }: LoadOptions = {}): Promise<LoadResult> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    return { problems: [unreadable(file, error)] }
  }
  const absolute = resolve(file)
  const folder = dirname(absolute)
  const { document, faults, duplicates } = parseDocument(file, text)
  // What was read past a fault of the syntax is a guess: nothing is said about it.
  if (faults.length > 0) return { problems: faults }

  const parsed = configSchema.safeParse(document.value, { error: describeIssue })
  const mounts = mountsIn(document.value)
  const secret = await loadSecret(document.value, { folder, env })
  const values = [
    ...(await mountFindings(mounts, folder)),
    ...secretFindings(secret, mounts, folder),
    ...listenFindings(document.value),
  ]
  const problems = [
    ...duplicates,
    ...(parsed.error?.issues ?? []).flatMap(findingsOf).map((finding) => locate(document, finding, finding.at)),
    ...addressFindings([...mounts.keys()]).map((finding) => locate(document, finding, 'key')),
    ...values.map((finding) => locate(document, finding)),
  ]
  if (!parsed.success || problems.length > 0)
    return { problems: problems.sort((a, b) => a.line - b.line || a.column - b.column) }
  const { cursorSecret: _, $schema: __, ...config } = parsed.data
  const cursorSecret = secret !== undefined && 'value' in secret ? { cursorSecret: secret.value } : {}
  return { config: { ...config, file: absolute, folder, ...cursorSecret } }
}

function unreadable(file: string, error: unknown): ConfigProblem {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  const missing = code === 'ENOENT' || code === 'ENOTDIR'
  return {
    file,
    line: 0,
    column: 0,
    key: '',
    message: missing ? 'There is no such file.' : `The file cannot be read (${code}).`,
    fix: missing
      ? 'Correct the path, or write one with: hikidashi init.'
      : 'Correct the path, or let this user read it.',
  }
}

/** Folders that are not there. They are looked for one by one, whatever else may be wrong with their mounts. */
async function mountFindings(mounts: ReadonlyMap<string, unknown>, folder: string): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const [address, mount] of mounts) {
    const root = rootOf(mount, folder)
    if (root !== undefined) findings.push(...(await checkFolder(root, ['mounts', address, 'root'])))
    const { data: repository } = gitShape.repository.safeParse(memberOf(mount, 'repository'))
    if (repository !== undefined && memberOf(mount, 'provider') === 'git')
      findings.push(...(await checkFolder(resolveFolder(repository, folder), ['mounts', address, 'repository'])))
  }
  return findings
}

/** The folder that a mount serves, if it is one of files. */
function rootOf(mount: unknown, folder: string): string | undefined {
  const { data: root } = filesShape.root.safeParse(memberOf(mount, 'root'))
  return root === undefined || memberOf(mount, 'provider') !== 'files' ? undefined : resolveFolder(root, folder)
}

async function loadSecret(config: unknown, options: { folder: string; env: Env }) {
  const { data: source } = configSchema.shape.cursorSecret.safeParse(memberOf(config, 'cursorSecret'))
  return source === undefined ? undefined : { source, ...(await resolveSecret(source, options)) }
}

function secretFindings(
  secret: Awaited<ReturnType<typeof loadSecret>>,
  mounts: ReadonlyMap<string, unknown>,
  folder: string,
): readonly Finding[] {
  if (secret === undefined) return []
  const finding = (message: string, fix: string) => [{ path: ['cursorSecret'], message, fix }]
  if ('message' in secret) return finding(secret.message, secret.fix)
  if (Buffer.byteLength(secret.value) < minSecret) {
    const fix = 'Use a random one, such as the output of: openssl rand -hex 32.'
    return finding(`The secret is shorter than ${minSecret} bytes.`, fix)
  }
  if ('env' in secret.source) return []
  const file = resolve(folder, secret.source.file)
  for (const [address, mount] of mounts) {
    const root = rootOf(mount, folder)
    if (root !== undefined && isInside(file, root))
      return finding(
        `The file with the secret lies in the folder that ${JSON.stringify(address)} serves.`,
        'Move it to a place that is not served.',
      )
  }
  return []
}

function listenFindings(config: unknown): readonly Finding[] {
  const http = memberOf(config, 'http')
  const { data: listen } = listenSchema.safeParse(memberOf(http, 'listen'))
  const allowed = memberOf(http, 'allowedHosts')
  const isAllowed = Array.isArray(allowed) && allowed.length > 0
  if (listen === undefined || isLoopback(listen.host) || isAllowed) return []
  return [
    {
      path: ['http', 'listen'],
      message: `Other machines can ask at ${listen.host}, and nothing says by which host names.`,
      fix: 'Add "allowedHosts" with the names that clients will use, or listen on the loopback.',
    },
  ]
}

function isInside(file: string, folder: string): boolean {
  const path = relative(folder, file)
  return !isAbsolute(path) && path !== '..' && !path.startsWith(`..${sep}`)
}

function mountsIn(config: unknown): ReadonlyMap<string, unknown> {
  const mounts = memberOf(config, 'mounts')
  const isRecord = typeof mounts === 'object' && mounts !== null && !Array.isArray(mounts)
  return new Map(isRecord ? Object.entries(mounts) : [])
}

function memberOf(value: unknown, key: string): unknown {
  const isRecord = typeof value === 'object' && value !== null && Object.hasOwn(value, key)
  return isRecord ? (value as Record<string, unknown>)[key] : undefined
}
