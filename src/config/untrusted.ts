import { readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { makeFolder } from '../core/kit/make-folder.ts'
import { memberOf, objectOf } from '../core/kit/object.ts'
import { isLoopback } from '../core/uri.ts'
import { sourceNamed } from '../providers/index.ts'
import * as z from '../schema/builder.ts'
import {
  type Effect,
  type EffectContext,
  type EffectRules,
  effectsBy,
  pathEffects,
  secretEffects,
  serviceEffects,
  withoutEffects,
} from '../schema/shapes.ts'
import { searchOption } from './findings.ts'
import { type ConfigFile, settingsShape } from './schema.ts'
import type { MountSchemas } from './schema-parts.ts'
import { stateFolder } from './state-folder.ts'

type Env = Readonly<Record<string, string | undefined>>

const recordSchema = z.object({
  file: z.string(),
  /** Of the configuration's bytes, in hexadecimal. */
  sha256: z.string(),
  /** When the trust was recorded (ISO 8601). */
  at: z.string(),
})

type TrustRecord = z.output<typeof recordSchema>

function recordsFolder(env: Env): string {
  return join(stateFolder(env), 'trust')
}

/**
 * Symbolic links of the folder are resolved, but not the file itself: relative paths in the file start in this folder.
 */
async function trustedPath(file: string): Promise<string> {
  const absolute = resolve(file)
  return join(await realpath(dirname(absolute)), basename(absolute))
}

/** Loading node:crypto slows down a start. */
function sha256Hex(content: string | Uint8Array): string {
  return process.getBuiltinModule('node:crypto').createHash('sha256').update(content).digest('hex')
}

function recordName(file: string, sha256: string): string {
  return `${sha256Hex(`${file}\0${sha256}`)}.json`
}

export async function isTrustedConfig(file: string, content: Uint8Array, env: Env = process.env): Promise<boolean> {
  const path = await trustedPath(file).catch(() => undefined)
  if (path === undefined) return false
  const sha256 = sha256Hex(content)
  const record = await readRecord(join(recordsFolder(env), recordName(path, sha256)))
  return record?.file === path && record.sha256 === sha256
}

/** @throws the system error if the state folder cannot be written */
export async function recordTrust(file: string, content: Uint8Array, env: Env = process.env): Promise<TrustRecord> {
  const record = { file: await trustedPath(file), sha256: sha256Hex(content), at: new Date().toISOString() }
  const folder = recordsFolder(env)
  makeFolder(folder, 0o700)
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

/** Resolves to the number of revoked records. */
export async function revokeTrust(file: string, env: Env = process.env): Promise<number> {
  // The links of a folder that no longer exists cannot be resolved.
  const path = await trustedPath(file).catch(() => resolve(file))
  const records = (await listTrust(env)).filter((record) => record.file === path)
  for (const { sha256 } of records) await rm(join(recordsFolder(env), recordName(path, sha256)), { force: true })
  return records.length
}

export async function listTrust(env: Env = process.env): Promise<readonly TrustRecord[]> {
  const folder = recordsFolder(env)
  const names = await readdir(folder).catch(() => [])
  const records = await Promise.all(
    names.filter((name) => /^[0-9a-f]{64}\.json$/.test(name)).map((name) => readRecord(join(folder, name))),
  )
  return records
    .flatMap((record) => (record === undefined ? [] : [record]))
    .sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.at < b.at ? -1 : 1))
}

/**
 * Returns `trusted` while the file has the trusted content, `changed` if it has another one, `gone` if it cannot be
 * read.
 */
export async function trustState({ file, sha256 }: TrustRecord): Promise<'trusted' | 'changed' | 'gone'> {
  const content = await readFile(file).catch(() => undefined)
  if (content === undefined) return 'gone'
  return sha256Hex(content) === sha256 ? 'trusted' : 'changed'
}

/** A record that neither this user nor root owns, or that others may write, is ignored. */
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

/** A part of a configuration that is not used until its user trusts the configuration. */
export interface WithheldPart {
  /** The address of a mount, or the name of a setting such as `audit`. */
  readonly name: string
  readonly part: 'mount' | 'setting'
  readonly effects: readonly Effect[]
}

type Raw = Readonly<Record<string, unknown>>

/**
 * Returns the parts of a configuration that do more than read its folder, and the parts that depend on them. A part
 * that violates the schema is withheld as well, because its effects are unknown.
 * @param document The configuration as it was written.
 * @param folder The absolute path of the folder that contains the configuration.
 * @param schemas The schemas of the sources that the mounts name.
 */
export function withheldParts(document: unknown, folder: string, schemas: MountSchemas): readonly WithheldPart[] {
  const { mounts: writtenMounts, ...others } = objectOf(document)
  const settings = Object.entries(others).flatMap(([key, value]) => settingOf(key, value, { folder, address: '' }))
  const isStoreWithheld = settings.some(({ name }) => name === 'store')
  const mounts = Object.entries(objectOf(writtenMounts)).flatMap(([address, value]) =>
    mountOf(address, value, isStoreWithheld, schemas, { folder, address }),
  )
  const absentMounts = new Set(mounts.map(({ name }) => name))
  return [...settings, ...mounts, ...emptySearches(objectOf(writtenMounts), absentMounts)]
}

function settingOf(key: string, value: unknown, context: EffectContext): readonly WithheldPart[] {
  const part = { name: key, part: 'setting' } as const
  const schema = Object.hasOwn(settingsShape, key) ? settingsShape[key as keyof typeof settingsShape] : undefined
  const result = schema?.safeParse(value)
  if (!result?.success) return [{ ...part, effects: [] }]
  const effects = effectsOfSetting({ [key]: result.data }, context)
  return effects.length === 0 ? [] : [{ ...part, effects }]
}

function mountOf(
  address: string,
  value: unknown,
  isStoreWithheld: boolean,
  schemas: MountSchemas,
  context: EffectContext,
): readonly WithheldPart[] {
  const part = { name: address, part: 'mount' } as const
  const result = schemas.mount.safeParse(value)
  if (!result.success) return [{ ...part, effects: [] }]
  const needsStore = isStoreWithheld && sourceNamed(result.data.provider)?.keeps === true
  const effects: readonly Effect[] = [
    ...schemas.effectsOf(result.data, context),
    ...(needsStore ? [{ kind: 'needs' as const, what: 'store' }] : []),
  ]
  return effects.length === 0 ? [] : [{ ...part, effects }]
}

function emptySearches(mounts: Raw, absentMounts: ReadonlySet<string>): readonly WithheldPart[] {
  return Object.entries(mounts).flatMap(([name, value]) => {
    const over = searchedBy(value)
    if (over === undefined || absentMounts.has(name)) return []
    if (over.some((address) => !absentMounts.has(String(address)))) return []
    return [{ name, part: 'mount' as const, effects: over.map((what) => ({ kind: 'needs', what: String(what) })) }]
  })
}

export function withoutParts<Config extends object>(config: Config, withheld: readonly WithheldPart[]): Config {
  if (withheld.length === 0) return config
  const names = (part: WithheldPart['part']) =>
    new Set(withheld.flatMap((one) => (one.part === part ? [one.name] : [])))
  const [mounts, settings] = [names('mount'), names('setting')]
  const members = Object.entries(config).flatMap(([key, value]): readonly (readonly [string, unknown])[] => {
    if (settings.has(key)) return []
    if (key !== 'mounts') return [[key, value]]
    const rest = Object.entries(objectOf(value)).filter(([address]) => !mounts.has(address))
    return [[key, Object.fromEntries(rest.map(([address, mount]) => [address, narrowed(mount, mounts)]))]]
  })
  return Object.fromEntries(members) as Config
}

function narrowed(mount: unknown, absentMounts: ReadonlySet<string>): unknown {
  const over = searchedBy(mount)
  if (over === undefined) return mount
  return {
    ...objectOf(mount),
    [String(searchOption(mount))]: over.filter((address) => !absentMounts.has(String(address))),
  }
}

function searchedBy(mount: unknown): readonly unknown[] | undefined {
  const over = memberOf(mount, searchOption(mount) ?? '')
  return searchOption(mount) === undefined || !Array.isArray(over) ? undefined : over
}

type Http = NonNullable<ConfigFile['http']>
type Auth = NonNullable<Http['auth']>

const admits = (what: string): readonly Effect[] => [{ kind: 'admits', what }]

const auth: EffectRules<Auth> = {
  issuers: (issuers, context) =>
    issuers.flatMap(({ jwks, introspection }) => [
      ...(jwks === undefined ? [] : serviceEffects(jwks)),
      ...(introspection === undefined ? [] : serviceEffects(introspection.url)),
      ...secretEffects(introspection?.clientSecret, context),
    ]),
  ...withoutEffects('resource scopes implies'),
  tokens: pathEffects,
}

const http: EffectRules<Http> = {
  listen: ({ host }) => (isLoopback(host) ? [] : admits(`other machines, at ${host}`)),
  // A website that controls such a name can let it resolve to this machine (DNS rebinding).
  allowedHosts: (hosts) => hosts.flatMap((host) => admits(`requests for the host ${host}`)),
  allowedOrigins: (origins) => origins.flatMap((origin) => admits(`web pages of ${origin}`)),
  auth: (value, context) => effectsBy(auth, value, context),
  ...withoutEffects('path explorer metrics public contentLinks sse limits'),
}

const store: EffectRules<NonNullable<ConfigFile['store']>> = {
  sqlite: (file) => [{ kind: 'writes', what: file }],
  postgres: (source, context) => [...serviceEffects('the database of the store'), ...secretEffects(source, context)],
  ...withoutEffects('schema connections'),
}

const settings: EffectRules<Omit<ConfigFile, 'mounts'>> = {
  http: (value, context) => effectsBy(http, value, context),
  audit: ({ file }) => [{ kind: 'writes', what: file }],
  store: (value, context) => effectsBy(store, value, context),
  events: ({ webhooks }) => (webhooks === undefined ? [] : [{ kind: 'sends', what: 'endpoints that clients name' }]),
  // Replicas write only into the store, which has its own rule.
  ...withoutEffects(
    '$schema name instructions overview clients context roles pages changes spill replicas linkedRoots experimental',
  ),
  cursorSecret: secretEffects,
}

/** Effects of settings outside mounts: of the top level, and of the members of `http`, `http.auth` and `store`. */
export const settingEffects = { settings, http, auth, store } as const

function effectsOfSetting(values: Partial<Omit<ConfigFile, 'mounts'>>, context: EffectContext): readonly Effect[] {
  return effectsBy(settings as EffectRules<typeof values>, values, context)
}
