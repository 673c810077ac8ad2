import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { isResourceError } from '../core/errors.ts'
import { parseAddress } from '../core/uri.ts'
import { checkFiles } from './providers/files.ts'
import { parseDocument } from './document.ts'
import { type ConfigProblem, type Finding, type Step, locate } from './problem.ts'
import { type ConfigFile, configSchema } from './schema.ts'
import { resolveSecret } from './secret.ts'
import { isLoopback } from './values.ts'
import { describeIssue, partsOfRefusal, unknownKey } from './words.ts'

/** A configuration that was found good: it can be built. */
export interface Config extends Omit<ConfigFile, 'cursorSecret' | '$schema'> {
  /** Its absolute path. */
  readonly file: string
  /** The folder that it is in: relative paths start there. */
  readonly folder: string
  readonly cursorSecret?: string
}

export type LoadResult = { readonly config: Config } | { readonly problems: readonly ConfigProblem[] }

export interface LoadOptions {
  /** How the file is called in problems; by default as it was given. */
  readonly env?: Readonly<Record<string, string | undefined>>
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
  const { document, problems: faults } = parseDocument(file, text)
  // What was read past a fault of the syntax is a guess: nothing more is said about it.
  if (faults.length > 0) return { problems: inOrder(faults) }

  const parsed = configSchema.safeParse(document.value, { error: describeIssue })
  const problems = [
    ...(parsed.error?.issues ?? []).flatMap(findingsOf).map((finding) => locate(document, finding, finding.at)),
    ...addressFindings(document.value).map((finding) => locate(document, finding, 'key')),
  ]
  const place = (finding: Finding) => void problems.push(locate(document, finding))
  for (const [address, mount] of mountsOf(document.value)) {
    // Looked at one by one, so that a fault in one mount does not hide a missing folder in another.
    const one = configSchema.shape.mounts.valueType.safeParse(mount)
    if (!one.success) continue
    const at: readonly Step[] = ['mounts', address]
    for (const finding of await checkFiles(one.data, folder)) place({ ...finding, path: [...at, ...finding.path] })
  }
  const secret = configSchema.shape.cursorSecret.safeParse(memberOf(document.value, 'cursorSecret')).data
  const cursorSecret = secret === undefined ? undefined : await resolveSecret(secret, { folder, env })
  if (cursorSecret !== undefined && 'message' in cursorSecret) place({ path: ['cursorSecret'], ...cursorSecret })
  else if (cursorSecret !== undefined && Buffer.byteLength(cursorSecret.value) < minSecret)
    place({
      path: ['cursorSecret'],
      message: `The secret is shorter than ${minSecret} bytes.`,
      fix: 'Use a random one, such as the output of: openssl rand -hex 32.',
    })
  const http = configSchema.shape.http.safeParse(memberOf(document.value, 'http')).data
  if (http?.listen !== undefined && !isLoopback(http.listen.host) && (http.allowedHosts ?? []).length === 0)
    place({
      path: ['http', 'listen'],
      message: `Whoever reaches this machine can ask at ${http.listen.host}, and nothing says by which host names.`,
      fix: 'Add "allowedHosts" with the names that clients will use, or listen on the loopback.',
    })

  if (!parsed.success || problems.length > 0) return { problems: inOrder(problems) }
  const { cursorSecret: _, $schema: __, ...config } = parsed.data
  return {
    config: {
      ...config,
      file: absolute,
      folder,
      ...(cursorSecret !== undefined && 'value' in cursorSecret ? { cursorSecret: cursorSecret.value } : {}),
    },
  }
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
    fix: missing ? 'Correct the path, or write one with: hikidashi init.' : 'Correct the path, or let this user read it.',
  }
}

type Issue = NonNullable<ReturnType<typeof configSchema.safeParse>['error']>['issues'][number]
type Placed = Finding & { readonly at?: 'key' | 'value' }

/** What an issue of zod's says, in our words and with its place. */
function findingsOf(issue: Issue): readonly Placed[] {
  const path = issue.path.map((step) => (typeof step === 'number' ? step : String(step)))
  if (issue.code === 'unrecognized_keys') {
    const known = JSON.parse(issue.message) as readonly string[]
    return issue.keys.map((key) => ({ path: [...path, key], ...unknownKey(key, known), at: 'key' }))
  }
  if (issue.code === 'invalid_union' && issue.discriminator === undefined) {
    // The branch whose type was right has more to say than that the value is none of several types.
    const branch = issue.errors.find((inner) => inner.some(({ path: [first] }) => first !== undefined))
    if (branch !== undefined)
      return branch.flatMap((inner) => findingsOf({ ...inner, path: [...issue.path, ...inner.path] } as Issue))
  }
  return [{ path, ...partsOfRefusal(issue.message) }]
}

/** What is wrong with the addresses, each by itself and beside the others. */
function addressFindings(value: unknown): readonly Finding[] {
  const findings: Finding[] = []
  const seen: { readonly address: string; readonly text: string }[] = []
  for (const [address] of mountsOf(value)) {
    const path = ['mounts', address]
    try {
      const { text } = parseAddress(address)
      const other = seen.find((mount) => text === mount.text || isBelow(text, mount.text) || isBelow(mount.text, text))
      seen.push({ address, text })
      if (other !== undefined)
        findings.push({
          path,
          message: `The address overlaps with ${JSON.stringify(other.address)}.`,
          fix: 'Give each mount an address of its own, neither at nor under another; "exclude" leaves a folder out of a mount.',
        })
    } catch (error) {
      if (!isResourceError(error)) throw error
      findings.push({
        path,
        message: `This is not an address. ${error.message}`,
        fix: 'Write one such as "file:///docs" or "docs://manual".',
      })
    }
  }
  return findings
}

function isBelow(address: string, other: string): boolean {
  return address.startsWith(`${other}/`)
}

function mountsOf(value: unknown): readonly (readonly [string, unknown])[] {
  const mounts = memberOf(value, 'mounts')
  return typeof mounts === 'object' && mounts !== null && !Array.isArray(mounts) ? Object.entries(mounts) : []
}

function memberOf(value: unknown, key: string): unknown {
  const isRecord = typeof value === 'object' && value !== null && Object.hasOwn(value, key)
  return isRecord ? (value as Record<string, unknown>)[key] : undefined
}

function inOrder(problems: readonly ConfigProblem[]): readonly ConfigProblem[] {
  return [...problems].sort((a, b) => a.line - b.line || a.column - b.column)
}
