import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { errorCodeOf } from '../core/errors.ts'
import { memberOf, objectOf } from '../core/kit/object.ts'
import { isLoopback } from '../core/uri.ts'
import { sourceNamed } from '../providers/index.ts'
import type { FindingContext, Source } from '../providers/source.ts'
import { access as accessSchema, listenAddress as listenSchema } from '../schema/fields.ts'
import { isInside, resolveConfigPath, resolveSecret, secretSourcesIn } from '../schema/values.ts'
import type { StoreOptions } from '../store/index.ts'
import { type Auth, loadAuth } from './auth.ts'
import { parseDocument } from './document.ts'
import type { CheckedValue } from './explain.ts'
import {
  addressFindings,
  clientFindings,
  issueFindings,
  overviewFindings,
  postingFindings,
  replicasFindings,
  searchFindings,
} from './findings.ts'
import { pathExistenceFindings } from './folder.ts'
import { type ConfigProblem, type Finding, locateFinding, servedFileFinding } from './problem.ts'
import { type ConfigFile, configSchemaOf, loadConfigSchema, loadCursorSecrets } from './schema.ts'
import { loadMountSchemas, type MountSchemas, type OutsideSources } from './schema-parts.ts'
import { loadStoreSettings } from './store.ts'
import { type WithheldPart, withheldParts, withoutParts } from './untrusted.ts'

export interface Config extends Omit<ConfigFile, 'cursorSecret' | '$schema' | 'store'> {
  readonly file: string
  /** The folder of the configuration, at which relative paths start. */
  readonly folder: string
  readonly cursorSecret?: string
  /** Cursors that were sealed with one of them are still accepted. */
  readonly earlierCursorSecrets?: readonly string[]
  readonly store: StoreOptions
  /** The values of the secrets that the configuration refers to. */
  readonly secrets: readonly string[]
  readonly auth?: Auth
  readonly isTrusted: boolean
  /** The parts that are left out, because the user has not trusted the configuration. */
  readonly withheld: readonly WithheldPart[]
  /** Mounts whose folder or file is missing. Each use tries to open them again. */
  readonly absent: readonly { readonly address: string; readonly problem: ConfigProblem }[]
}

export type LoadResult = { readonly config: Config } | { readonly problems: readonly ConfigProblem[] }

type Env = Readonly<Record<string, string | undefined>>

export interface LoadOptions {
  /** For secrets of the form `{ "env": … }`. */
  readonly env?: Env
  /**
   * Returns whether the user trusts a configuration with these bytes. Without trust, parts that do more than read the
   * folder of the configuration are left out. By default the configuration is trusted.
   */
  readonly isTrusted?: (content: Uint8Array) => Promise<boolean>
  /**
   * Whether a configuration is valid although a folder or file of a mount is missing ({@link Config.absent}). By
   * default it is refused.
   */
  readonly admitsAbsent?: boolean
}

/** Returns the configuration, or its problems in the order of the file. */
export async function loadConfig(file: string, options: LoadOptions = {}): Promise<LoadResult> {
  const { env = process.env, isTrusted, admitsAbsent = false } = options
  let content: Buffer
  try {
    content = await readFile(file)
  } catch (error) {
    return { problems: [missingFileProblem(file, error)] }
  }
  const absolute = resolve(file)
  const folder = dirname(absolute)
  const { document, faults, duplicates } = parseDocument(file, content.toString('utf8'))
  // After a syntax fault the parser guesses, so other faults are not reported.
  if (faults.length > 0) return { problems: faults }

  const writtenMounts = mountsIn(document.value)
  const isWhole = isTrusted === undefined || (await isTrusted(content))
  const outside = await loadOutsideSources(writtenMounts, folder, isWhole)
  const schemas = await loadMountSchemas(writtenMounts.values(), outside.sources)
  const checkedValue = await judge(document.value, schemas, outside.sources)
  const withheld = isWhole ? [] : withheldParts(document.value, folder, schemas)
  // Secrets are fetched and paths are checked only for the trusted parts.
  const usedConfig = withoutParts(Object(document.value) as object, withheld)
  const mounts = mountsIn(usedConfig)
  const servedBy = (path: string) => [...writtenMounts].find(([, mount]) => isServed(path, mount, folder, schemas))?.[0]
  const cursors = await loadCursorSecrets(memberOf(usedConfig, 'cursorSecret'), { folder, env, servedBy })
  const authorization = await loadAuth(memberOf(memberOf(usedConfig, 'http'), 'auth'), { folder, env, servedBy })
  const storeSettings = await loadStoreSettings(memberOf(usedConfig, 'store'), mounts, { folder, env, servedBy })
  const values = [
    ...outside.findings,
    ...authorization.findings,
    ...storeSettings.findings,
    ...postingFindings(writtenMounts),
    ...clientFindings(document.value, [...writtenMounts.keys()]),
    ...(await sourceFindings(writtenMounts, schemas, { folder, servedBy })),
    ...searchFindings(writtenMounts),
    ...twinFindings(mounts),
    ...cursors.findings,
    ...replicasFindings(document.value),
    ...listenFindings(document.value),
    ...pathFindings(document.value),
    ...auditFindings(document.value, folder, servedBy),
  ]
  const absent = (await absences(mounts, folder, schemas)).map(({ address, finding }) => ({
    address,
    problem: locateFinding(document, finding),
  }))
  const configProblems = [
    ...duplicates,
    ...('issues' in checkedValue ? checkedValue.issues : [])
      .flatMap(issueFindings)
      .filter(({ path }) => !outside.findings.some((finding) => String(finding.path) === String(path)))
      .map((finding) => locateFinding(document, finding, finding.at)),
    ...addressFindings([...writtenMounts.keys()]).map((finding) => locateFinding(document, finding, 'key')),
    ...overviewFindings(document.value, [...writtenMounts.keys()]).map((finding) =>
      locateFinding(document, finding, 'key'),
    ),
    ...values.map((finding) => locateFinding(document, finding)),
  ]
  const problems = [...configProblems, ...absent.map(({ problem }) => problem)]
  if ('issues' in checkedValue || (admitsAbsent ? configProblems : problems).length > 0)
    return { problems: problems.sort((a, b) => a.line - b.line || a.column - b.column) }
  const trusted = withoutParts(checkedValue.data, withheld)
  const { cursorSecret: _, $schema: __, store: ___, ...config } = trusted
  const [cursorSecret, ...earlierCursorSecrets] = cursors.values
  const sealing = cursorSecret === undefined ? {} : { cursorSecret, earlierCursorSecrets }
  const auth = authorization.auth === undefined ? {} : { auth: authorization.auth }
  const secrets = await resolveSecrets(trusted, { folder, env })
  const rest = { file: absolute, folder, secrets, store: storeSettings.store, isTrusted: isWhole, withheld, absent }
  const openMounts = withModules(config.mounts, outside.modules)
  return { config: { ...config, mounts: openMounts, ...rest, ...sealing, ...auth } }
}

/** zod is loaded only for a refused value, to find the reasons. */
async function judge(
  value: unknown,
  { mount }: MountSchemas,
  outside: OutsideSources,
): Promise<CheckedValue<ConfigFile>> {
  const { data } = configSchemaOf(mount).safeParse(value)
  if (data !== undefined) return { data }
  const { validateWithZod } = await import('./explain.ts')
  return validateWithZod(await loadConfigSchema(outside), value)
}

/** In a configuration that is not trusted, sources from outside are named, and not loaded. */
async function loadOutsideSources(mounts: ReadonlyMap<string, unknown>, folder: string, isTrusted: boolean) {
  const sources = new Map<string, Source | undefined>()
  const modules = new Map<string, string>()
  const findings: Finding[] = []
  for (const [address, mount] of mounts) {
    const name = memberOf(mount, 'provider')
    if (typeof name !== 'string' || sourceNamed(name) !== undefined) continue
    const { loadOutsideSource, outsideModuleUrl } = await import('../providers/outside.ts')
    const url = outsideModuleUrl(name, folder)
    if (url === undefined) continue
    const source = isTrusted ? await loadOutsideSource(name, url) : undefined
    if (source !== undefined && 'fix' in source) findings.push({ path: ['mounts', address, 'provider'], ...source })
    else {
      sources.set(name, source)
      modules.set(name, url)
    }
  }
  return { sources, modules, findings }
}

function withModules(mounts: ConfigFile['mounts'], modules: ReadonlyMap<string, string>): ConfigFile['mounts'] {
  if (modules.size === 0) return mounts
  const entries = Object.entries(mounts).map(([address, mount]) => [
    address,
    { ...mount, provider: modules.get(mount.provider) ?? mount.provider },
  ])
  return Object.fromEntries(entries)
}

function missingFileProblem(file: string, error: unknown): ConfigProblem {
  const code = errorCodeOf(error) ?? 'unknown'
  const missing = code === 'ENOENT' || code === 'ENOTDIR'
  return {
    file,
    line: 0,
    column: 0,
    key: '',
    message: missing ? 'The file does not exist.' : `The file cannot be read (${code}).`,
    fix: missing
      ? 'Correct the path, or create a configuration with: hikidashi init.'
      : 'Correct the path, or let this user read it.',
  }
}

async function absences(
  mounts: ReadonlyMap<string, unknown>,
  folder: string,
  schemas: MountSchemas,
): Promise<readonly { readonly address: string; readonly finding: Finding }[]> {
  const examinations = [...mounts].map(async ([address, mount]) => {
    const findings = await Promise.all(
      pathsOf(mount, schemas).map(({ key, kind, name }) =>
        pathExistenceFindings(kind === 'file' ? kind : 'folder', resolveConfigPath(name, folder), [
          'mounts',
          address,
          key,
        ]),
      ),
    )
    return findings.flat().map((finding) => ({ address, finding }))
  })
  return (await Promise.all(examinations)).flat()
}

function pathsOf(mount: unknown, schemas: MountSchemas) {
  const { needs = {}, shape = {} } = schemas.sourceOf(mount) ?? {}
  return Object.entries(needs).flatMap(([key, kind]) => {
    const name = shape[key]?.safeParse(memberOf(mount, key)).data
    return kind === undefined || typeof name !== 'string' ? [] : [{ key, kind, name }]
  })
}

/** Others could read an audit log in a served folder, and each record would be notified as a change. */
function auditFindings(
  config: unknown,
  folder: string,
  servedBy: (path: string) => string | undefined,
): readonly Finding[] {
  const file = memberOf(memberOf(config, 'audit'), 'file')
  const address = typeof file === 'string' ? servedBy(resolve(folder, file)) : undefined
  return address === undefined ? [] : [servedFileFinding(['audit', 'file'], 'The audit log', address)]
}

async function sourceFindings(
  mounts: ReadonlyMap<string, unknown>,
  schemas: MountSchemas,
  context: Omit<FindingContext, 'address'>,
): Promise<readonly Finding[]> {
  const findings = await Promise.all(
    [...mounts].map(([address, mount]) => schemas.findingsOf(mount, { ...context, address })),
  )
  return findings.flat()
}

/** With "languages", a document names its translations, even those that access rules hide. */
function twinFindings(mounts: ReadonlyMap<string, unknown>): readonly Finding[] {
  return [...mounts].flatMap(([address, mount]) => {
    const { data: rules } = accessSchema.safeParse(memberOf(mount, 'access'))
    const languages = memberOf(mount, 'languages')
    const hidesPaths = rules?.some(({ match }) => match !== undefined) === true
    if (!hidesPaths || !Array.isArray(languages) || languages.length === 0) return []
    const message =
      'With "languages", a document would name its translations, even those that the access rules of this mount hide.'
    const fix = 'Remove "languages", or mount the restricted paths separately.'
    return [{ path: ['mounts', address, 'languages'], message, fix }]
  })
}

async function resolveSecrets(config: ConfigFile, options: { folder: string; env: Env }): Promise<readonly string[]> {
  // `audit` has a member `file`, as a source of a secret has. But that file is a log, which may be very long.
  const { audit: _, ...others } = config
  const secrets = await Promise.all(secretSourcesIn(others).map((source) => resolveSecret(source, options)))
  return secrets.flatMap((secret) => ('value' in secret ? [secret.value] : []))
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
      message: `Other machines can reach ${listen.host}, but "allowedHosts" names no host.`,
      fix: 'Add "allowedHosts" with the host names that clients use, or listen on the loopback interface.',
    },
  ]
}

/** Finds an endpoint at a path at which the server answers something else. */
function pathFindings(config: unknown): readonly Finding[] {
  const http = memberOf(config, 'http')
  const path = memberOf(http, 'path')
  if (typeof path !== 'string') return []
  const reservedPaths = ['/healthz', '/readyz', '/llms.txt']
  if (![undefined, false].some((value) => memberOf(http, 'metrics') === value)) reservedPaths.push('/metrics')
  if (memberOf(http, 'sse') === true) reservedPaths.push('/sse', '/messages')
  const isLink = path.startsWith('/content/') && memberOf(http, 'contentLinks') !== false
  if (!isLink && !reservedPaths.includes(path)) return []
  const message = `The server uses the path ${path} for something else, so no client could reach the MCP endpoint.`
  return [{ path: ['http', 'path'], message, fix: 'Write another path, such as "/mcp".' }]
}

function isServed(file: string, mount: unknown, folder: string, schemas: MountSchemas): boolean {
  return pathsOf(mount, schemas).some(
    ({ kind, name }) => kind === 'served folder' && isInside(file, resolveConfigPath(name, folder)),
  )
}

function mountsIn(config: unknown): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(objectOf(memberOf(config, 'mounts'))))
}
