import { defined, memberOf } from '../core/kit/object.ts'
import { sourceNamed } from '../providers/index.ts'
import * as z from '../schema/builder.ts'
import { secret, text } from '../schema/fields.ts'
import { refusal } from '../schema/refusals.ts'
import { resolveConfigPath, resolveSecret } from '../schema/values.ts'
import type { StoreOptions } from '../store/index.ts'
import { defaultStoreFile } from './folder.ts'
import { type Finding, servedFileFinding } from './problem.ts'

export const storeSchema = z
  .strictObject({
    sqlite: text.optionalKey(
      'The file of an SQLite database; it is created if it is missing. A relative path starts at the configuration file. By default a file in the state folder of the user, for the folder of the configuration file.',
    ),
    postgres: secret.optionalKey(
      'The URL of a PostgreSQL database, which replicas can share, as { "env": "NAME" } or { "file": "path" }.',
    ),
    schema: z
      .string()
      .regex(/^[a-z_][a-z0-9_]{0,62}$/, {
        error: refusal(
          'This is not the name of a schema.',
          'Write at most 63 characters of a-z, 0-9 and _, no digit first, such as "hikidashi".',
        ),
      })
      .optionalKey('The PostgreSQL schema of the tables. By default "hikidashi".'),
    connections: z
      .int()
      .min(1)
      .max(100)
      .optionalKey('Maximum number of connections to PostgreSQL, besides the one that listens. By default 8.'),
  })
  .refine(({ sqlite, postgres }) => sqlite === undefined || postgres === undefined, {
    error: refusal('There are two stores.', 'Remove "sqlite" or "postgres".'),
  })
  .refine(
    ({ postgres, schema, connections }) =>
      postgres !== undefined || (schema === undefined && connections === undefined),
    { error: refusal('Only PostgreSQL has a schema and connections.', 'Add "postgres", or remove these keys.') },
  )

export interface ConfigEnvironment {
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Returns the address of the mount that serves the folder of a file; `undefined` if none does. */
  readonly servedBy: (file: string) => string | undefined
}

/** Values that do not match the schema are skipped, and reported elsewhere. */
export async function loadStoreSettings(
  value: unknown,
  mounts: ReadonlyMap<string, unknown>,
  { folder, env, servedBy }: ConfigEnvironment,
): Promise<{ readonly store: StoreOptions; readonly findings: readonly Finding[] }> {
  const { data = {} } = storeSchema.safeParse(value ?? {})
  const { sqlite, postgres, schema, connections } = data
  if (postgres !== undefined) {
    const secret = await resolveSecret(postgres, { folder, env })
    const options = {
      connectionString: 'message' in secret ? '' : secret.value,
      ...defined({ schema, connections }),
    }
    const findings = 'message' in secret ? [{ path: ['store', 'postgres'], ...secret }] : []
    return { store: { postgres: options }, findings }
  }
  const place =
    sqlite === undefined
      ? { file: defaultStoreFile([folder], env), orMemory: true }
      : { file: resolveConfigPath(sqlite, folder) }
  const isNeeded =
    sqlite !== undefined ||
    [...mounts.values()].some((mount) => sourceNamed(memberOf(mount, 'provider'))?.keeps === true)
  const address = isNeeded ? servedBy(place.file) : undefined
  const placement = { store: { sqlite: place }, findings: [] }
  if (address === undefined) return placement
  const path = sqlite === undefined ? ['mounts', address, 'root'] : ['store', 'sqlite']
  const fix = 'Keep it elsewhere: { "store": { "sqlite": "path" } }.'
  return { ...placement, findings: [{ ...servedFileFinding(path, `The store ${place.file}`, address), fix }] }
}
