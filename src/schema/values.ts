/**
 * Values written in a configuration and on the command line: durations, sizes, folders, addresses to listen on, and
 * secrets.
 */
import { lstatSync, realpathSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { errorCodeOf, invalid } from '../core/errors.ts'
import { homeFolder } from '../core/kit/home.ts'
import { isLoopback, parseUri } from '../core/uri.ts'

const durations: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const sizes: Readonly<Record<string, number>> = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }

/**
 * Parses a duration to milliseconds. A number is in milliseconds; a text has a unit (`500ms`, `60s`, `30m`, `12h`,
 * `1d`).
 */
export function parseDuration(value: string | number): number | undefined {
  return parseQuantity(value, durations)
}

/**
 * Parses a size to bytes. A number is in bytes; a text has a unit (`512B`, `64KiB`, `16MiB`, `1GiB`). A size of 0 is
 * invalid.
 */
export function parseSize(value: string | number): number | undefined {
  const size = parseQuantity(value, sizes)
  return size === 0 ? undefined : size
}

function parseQuantity(value: string | number, units: Readonly<Record<string, number>>): number | undefined {
  const [, digits, unit = ''] = typeof value === 'number' ? [] : (/^(\d{1,15})([A-Za-z]+)$/.exec(value) ?? [])
  const factor = Object.hasOwn(units, unit) ? units[unit] : undefined
  const amount =
    typeof value === 'number' ? value : digits === undefined || factor === undefined ? -1 : Number(digits) * factor
  return Number.isSafeInteger(amount) && amount >= 0 ? amount : undefined
}

/** Returns an absolute path. A `name` that begins with `~/` is in the home folder, else it is relative to `from`. */
export function resolveConfigPath(name: string, from: string): string {
  return /^~(?=[\\/]|$)/.test(name) ? resolve(homeFolder(), name.slice(2)) : resolve(from, name)
}

/** Whether a path lies in a folder, or is the folder. Links are not followed. */
export function isInside(file: string, folder: string): boolean {
  const path = relative(folder, file)
  return !isAbsolute(path) && path !== '..' && !path.startsWith(`..${sep}`)
}

/**
 * Whether a path is outside a folder, after links are followed. A link without a target counts as outside, because its
 * target can be created later.
 */
export function leadsOut(target: string, folder: string): boolean {
  const real = realPath(target)
  const realFolder = realPath(folder)
  return real === undefined || realFolder === undefined || !isInside(real, realFolder)
}

/** Follows the links in a path. Missing names at its end stay. Returns `undefined` if the path cannot be resolved. */
export function realPath(target: string): string | undefined {
  try {
    return realpathSync(target)
  } catch (error) {
    const code = errorCodeOf(error)
    if (code !== 'ENOENT' || pathExists(target) || dirname(target) === target) return undefined
    const parent = realPath(dirname(target))
    return parent === undefined ? undefined : join(parent, relative(dirname(target), target))
  }
}

/**
 * Whether a file, folder or link exists. A start makes several of these calls, and they are faster without the thread
 * pool.
 */
export function pathExists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

/** Port 0 selects any free port. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** Parses `[HOST:]PORT`: `8787` (the loopback), `127.0.0.1:8787`, `localhost:8787`, `[::1]:8787`. */
export function parseListenAddress(value: string | number): ListenAddress | undefined {
  const [, bracketed, plain, digits] =
    /^(?:(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):)?(\d{1,5})$/.exec(String(value)) ?? []
  const port = digits === undefined ? Number.NaN : Number(digits)
  return port <= 65_535 ? { host: bracketed ?? plain ?? '127.0.0.1', port } : undefined
}

export type SecretSource = { readonly env: string } | { readonly file: string }

/** A secret, or the reason why there is none, which does not repeat the secret. */
type Secret = { readonly value: string } | { readonly message: string; readonly fix: string }

/** Returns the sources of secrets in a value, at any depth. */
export function secretSourcesIn(value: unknown): readonly SecretSource[] {
  if (typeof value !== 'object' || value === null) return []
  if (isSecretSource(value)) return [value]
  return Object.values(value).flatMap(secretSourcesIn)
}

function isSecretSource(value: object): value is SecretSource {
  const [[key, named] = [], ...others] = Object.entries(value)
  return others.length === 0 && (key === 'env' || key === 'file') && typeof named === 'string'
}

/** The path of a file is relative to `folder`. A line end at the end of the file is not part of the secret. */
export async function resolveSecret(
  source: SecretSource,
  {
    folder,
    env = process.env,
  }: { readonly folder: string; readonly env?: Readonly<Record<string, string | undefined>> },
): Promise<Secret> {
  if ('env' in source) {
    const value = env[source.env]
    if (value !== undefined && value !== '') return { value }
    return {
      message: `The environment variable ${source.env} is ${value === undefined ? 'not set' : 'empty'}.`,
      fix: 'Set it to the secret for the process that runs hikidashi.',
    }
  }
  const file = resolve(folder, source.file)
  try {
    const value = (await readFile(file, 'utf8')).replace(/\r?\n$/, '')
    if (value !== '') return { value }
    return { message: `The file ${file} is empty.`, fix: 'Write the secret into it.' }
  } catch (error) {
    const code = errorCodeOf(error) ?? 'unknown'
    return {
      message: `The file ${file} cannot be read (${code}).`,
      fix: 'Write the secret into it, and let this user read it.',
    }
  }
}

/**
 * Returns a secret that is sent in a header, or passed to a process.
 * @throws ResourceError `invalid` for a missing secret, and for one with control characters
 */
export async function requireSecret(key: string, source: SecretSource, folder: string): Promise<string> {
  const value = await readSecret(key, source, folder)
  // A control character such as a line end would break an HTTP header.
  if (/[^\x20-\x7e\u0080-\u{10ffff}]/u.test(value))
    throw invalid(
      `"${key}" contains a line end or another control character. Remove it from the secret.`,
      'configuration',
    )
  return value
}

/**
 * @param key The key of a mount that names the secret.
 * @throws ResourceError `invalid` if there is none
 */
export async function readSecret(key: string, source: SecretSource, folder: string): Promise<string> {
  const secret = await resolveSecret(source, { folder })
  if ('value' in secret) return secret.value
  throw invalid(`"${key}" has no value. ${secret.message} ${secret.fix}`, 'configuration')
}

/** Whether a request to this URL travels unencrypted over a network. */
export function isInTheClear(url: string): boolean {
  const { scheme, authority } = parseUri(url)
  return scheme === 'http' && !isLoopback(authority.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'))
}

/**
 * @throws ResourceError `invalid` for a URL to which credentials would be sent unencrypted, unless `insecure` allows it
 */
export function refuseInTheClear(url: string, insecure = false): void {
  if (insecure || !isInTheClear(url)) return
  throw invalid(
    'The credentials would go over the network without encryption. Write https://, or add "insecure": true.',
    'configuration',
  )
}
