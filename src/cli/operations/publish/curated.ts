import { basename } from 'node:path'
import { parseDocument } from '../../../config/document.ts'
import { loadConfig } from '../../../config/load.ts'
import { formatConfigProblem } from '../../../config/problem.ts'
import { loadMountSchemas, type MountConfig, type MountSchemas } from '../../../config/schema-parts.ts'
import { memberOf } from '../../../core/kit/object.ts'
import { sourceNamed } from '../../../providers/index.ts'
import { pathEffects, pathsEffects } from '../../../schema/shapes.ts'
import { secretSourcesIn } from '../../../schema/values.ts'
import { findSecretsByRules } from '../../../secrets/find.ts'
import { commandFailure } from '../../terminal/exit.ts'

export interface BundledConfig {
  readonly text: string
  /** The name of the server; the name of the file if it has none. */
  readonly name: string
  readonly mounts: readonly { readonly address: string; readonly title?: string | undefined }[]
  /** The environment variables of its secrets, each with the options that need it. */
  readonly variables: ReadonlyMap<string, readonly string[]>
}

/** Settings for a server of several clients. A bundle serves one person, over stdio. */
const serverSettings = ['http', 'store', 'audit', 'replicas', 'cursorSecret'] as const

/**
 * Reads a configuration that is to be served on the machines of others.
 * @throws CommandError if it is faulty, holds a secret, or needs something of this machine
 */
export async function readBundledConfig(file: string, text: string): Promise<BundledConfig> {
  // The secrets of the people who install the bundle are not known here, so variables get placeholders.
  const env = new Proxy({}, { get: (_, name) => `value of ${String(name)}` })
  const loadResult = await loadConfig(file, { env, admitsAbsent: true })
  if ('problems' in loadResult) throw commandFailure(loadResult.problems.map(formatConfigProblem).join('\n'))
  const { config } = loadResult
  const [secret] = findSecretsByRules(text, { path: file })
  if (secret !== undefined)
    throw commandFailure(
      `Line ${text.slice(0, secret.start).split('\n').length} of ${file} looks like a secret, which everybody with the bundle could read. Write { "env": "NAME" } for it: then the host asks its user.`,
    )
  const { value: storedValue } = parseDocument(file, text).document
  const mounts = Object.entries(config.mounts)
  const schemas = await loadMountSchemas(mounts.map(([, mount]) => mount))
  const faults = [
    ...serverSettings
      .filter((key) => memberOf(storedValue, key) !== undefined)
      .map((key) => `"${key}" is for a server of several clients, but a bundle serves one person. Remove the key.`),
    ...mounts.flatMap(([address, mount]) => faultsOf(address, mount, schemas)),
  ]
  if (faults.length > 0) throw commandFailure(`${file} cannot be put into a bundle.\n${faults.join('\n')}`)
  return {
    text,
    name: config.name ?? basename(file).replace(/\.[^.]*$/, ''),
    mounts: mounts.map(([address, { title }]) => ({ address, title })),
    variables: variablesIn(mounts),
  }
}

function faultsOf(address: string, mount: MountConfig, schemas: MountSchemas): readonly string[] {
  if (sourceNamed(mount.provider) === undefined)
    return [`${address} uses a source of your own, and its code would not be in the bundle. Leave the mount out.`]
  const { always, options = {} } = schemas.sourceOf(mount)?.effects ?? {}
  const rules: Readonly<Record<string, unknown>> = options
  const local = Object.entries(mount).flatMap(([key, value]) =>
    value !== undefined && (rules[key] === pathEffects || rules[key] === pathsEffects)
      ? [`${key} ${JSON.stringify(value)}`]
      : [],
  )
  const context = { folder: '/', address }
  const readPaths =
    always?.(mount as never, context).flatMap(({ kind, what }) => (kind === 'reads' ? [what] : [])) ?? []
  const files = secretSourcesIn(mount).flatMap((source) => ('file' in source ? [source.file] : []))
  return [
    ...[...local, ...readPaths].map(
      (what) =>
        `${address} reads ${what} of this machine. Leave the mount out; with --folders the host asks its user for folders.`,
    ),
    ...files.map(
      (name) => `${address} has a secret in the file ${name}. Write { "env": "NAME" }: then the host asks its user.`,
    ),
  ]
}

function variablesIn(mounts: readonly (readonly [string, MountConfig])[]): ReadonlyMap<string, readonly string[]> {
  const variables = new Map<string, readonly string[]>()
  for (const [address, mount] of mounts)
    for (const [key, value] of Object.entries(mount))
      for (const source of secretSourcesIn(value))
        if ('env' in source) variables.set(source.env, [...(variables.get(source.env) ?? []), `"${key}" of ${address}`])
  return variables
}
