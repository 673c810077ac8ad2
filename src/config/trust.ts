import { mkdir, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import * as z from '../schema/builder.ts'
import { stateFolder } from './folder.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Record that this user trusts a configuration with one content. */
interface TrustRecord {
  /** The absolute path of the configuration. */
  readonly file: string
  /** The SHA-256 digest of its bytes, in hexadecimal. */
  readonly sha256: string
  /** When it was recorded (ISO 8601). */
  readonly at: string
}

const recordSchema = z.object({ file: z.string(), sha256: z.string(), at: z.string() })

/** The records lie in the state folder, one file for each path and content, readable for this user only. */
function recordsFolder(env: Env): string {
  return join(stateFolder(env), 'trust')
}

/** The path of a configuration with the links of its folder followed: relative paths in it start in that folder. */
async function trustedPath(file: string): Promise<string> {
  const absolute = resolve(file)
  return join(await realpath(dirname(absolute)), basename(absolute))
}

/** In hexadecimal. Loads node:crypto when it is first needed: a start with a configuration begins with this module. */
function digestOf(content: string | Uint8Array): string {
  return process.getBuiltinModule('node:crypto').createHash('sha256').update(content).digest('hex')
}

function recordName(file: string, sha256: string): string {
  return `${digestOf(`${file}\0${sha256}`)}.json`
}

/** Whether this user trusts a configuration with exactly this content. */
export async function isTrusted(file: string, content: Uint8Array, env: Env = process.env): Promise<boolean> {
  const path = await trustedPath(file).catch(() => undefined)
  if (path === undefined) return false
  const sha256 = digestOf(content)
  const record = await readRecord(join(recordsFolder(env), recordName(path, sha256)))
  return record?.file === path && record.sha256 === sha256
}

/**
 * Remembers that this user trusts a configuration with this content.
 *
 * @throws the error of the system where the state folder cannot be written.
 */
export async function recordTrust(file: string, content: Uint8Array, env: Env = process.env): Promise<TrustRecord> {
  const record = { file: await trustedPath(file), sha256: digestOf(content), at: new Date().toISOString() }
  const folder = recordsFolder(env)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const temporary = join(folder, `.${process.getBuiltinModule('node:crypto').randomBytes(8).toString('hex')}`)
  try {
    await writeFile(temporary, `${JSON.stringify(record)}\n`, { flag: 'wx', mode: 0o600 })
    await rename(temporary, join(folder, recordName(record.file, record.sha256)))
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  return record
}

/** Forgets every content of a configuration that was trusted. Resolves to how many there were. */
export async function revokeTrust(file: string, env: Env = process.env): Promise<number> {
  // A folder that is gone has no links to follow.
  const path = await trustedPath(file).catch(() => resolve(file))
  const found = (await listTrust(env)).filter((record) => record.file === path)
  for (const { sha256 } of found) await rm(join(recordsFolder(env), recordName(path, sha256)), { force: true })
  return found.length
}

/** Every record, by path. */
export async function listTrust(env: Env = process.env): Promise<readonly TrustRecord[]> {
  const folder = recordsFolder(env)
  const names = await readdir(folder).catch(() => [])
  const found = await Promise.all(
    names.filter((name) => /^[0-9a-f]{64}\.json$/.test(name)).map((name) => readRecord(join(folder, name))),
  )
  return found
    .flatMap((record) => (record === undefined ? [] : [record]))
    .sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.at < b.at ? -1 : 1))
}

/** Whether the file of a configuration still has the content that was trusted. */
export async function trustState({ file, sha256 }: TrustRecord): Promise<'trusted' | 'changed' | 'gone'> {
  const content = await readFile(file).catch(() => undefined)
  if (content === undefined) return 'gone'
  return digestOf(content) === sha256 ? 'trusted' : 'changed'
}

/** Reads a record. A record of another user, or one that others may write, is ignored. */
async function readRecord(path: string): Promise<TrustRecord | undefined> {
  try {
    const { uid, mode } = await stat(path)
    const own = process.getuid?.()
    if (own !== undefined && ((uid !== own && uid !== 0) || (mode & 0o022) !== 0)) return undefined
    return recordSchema.safeParse(JSON.parse(await readFile(path, 'utf8'))).data
  } catch {
    return undefined
  }
}
