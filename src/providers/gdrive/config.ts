import { defined } from '../../core/kit/object.ts'
import * as z from '../../schema/builder.ts'
import { durationFrom, interval, secret, sizeUpTo, text } from '../../schema/fields.ts'
import { createRefuser, type Finding, refusal } from '../../schema/refusals.ts'
import {
  documentEffectRules,
  documentsShape,
  pathEffects,
  secretEffects,
  serviceEffects,
  withoutEffects,
} from '../../schema/shapes.ts'
import { readSecret, requireSecret, resolveConfigPath } from '../../schema/values.ts'
import { ownCredentialFiles } from '../../secrets/own-files.ts'
import { defineSourceSchema, type FindingContext, type OpenSource, type OptionsOf } from '../source.ts'

const id = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/, {
  error: refusal(
    'This is not an id of Google Drive.',
    'Write the last part of the link to the folder or shared drive.',
  ),
})

const gdriveShape = {
  folder: id.optionalKey(
    'Serves only the folder with this id, in My Drive or a shared drive. By default all of My Drive.',
  ),
  drives: z
    .union([z.literal(true), z.array(id).min(1)], {
      error: refusal('This is not a choice of shared drives.', 'Write true for all, or an array of ids.'),
    })
    .optionalKey('Serves shared drives instead of My Drive: true for all, or an array of ids.'),
  shared: z
    .boolean()
    .optionalKey('Serves the files that others have shared with the account, instead of My Drive. By default false.'),
  shortcuts: z
    .enum(['none', 'inside', 'anywhere'])
    .optionalKey(
      'Which shortcuts are resolved: "none"; "inside", shortcuts to served files; "anywhere", shortcuts to all files that the account can read. By default "anywhere" in My Drive, and "inside" elsewhere.',
    ),
  clientId: secret.optionalKey(
    'The id of an OAuth client of the type "Desktop app", as { "env": "NAME" } or { "file": "path" }. Then run: hikidashi auth gdrive.',
  ),
  clientSecret: secret.optionalKey(
    'The secret of the OAuth client in "clientId", as { "env": "NAME" } or { "file": "path" }.',
  ),
  tokenFile: text.optionalKey(
    `The file in which \`hikidashi auth gdrive\` keeps the token for reading, relative to the configuration file. Other users must not be able to read it. By default "${ownCredentialFiles.driveToken}".`,
  ),
  key: secret.optionalKey('The key of a service account in JSON, as { "file": "key.json" } or { "env": "NAME" }.'),
  subject: text.optionalKey(
    'The e-mail address of the user for whom the service account acts, by domain-wide delegation.',
  ),
  permissions: z
    .boolean()
    .optionalKey(
      'Shows a file only to callers with whom Drive shares it: one of their roles must be the e-mail address, group or domain of a reader. By default false: all callers of the mount see all files of the account.',
    ),
  interval: interval.optionalKey(
    'Interval at which Drive is polled for changes, and maximum age of a listing. By default "15s".',
  ),
  maxFiles: z.int().min(1).max(2_000_000).optionalKey('Maximum number of files and folders. By default 200000.'),
  maxBytes: sizeUpTo('256MiB').optionalKey('Maximum size of a file, or of a part, in one answer. By default "16MiB".'),
  timeout: durationFrom('100ms').optionalKey('Time-out of one answer of Google, with all retries. By default "30s".'),
  endpoint: text.optionalKey(
    'A server on this machine that replaces Google, for tests: "http://127.0.0.1:4443". By default Google.',
  ),
  ...documentsShape,
}

function checkGdrive(mountOptions: OptionsOf<typeof gdriveShape>, context: z.RefinementCtx): void {
  const refuse = createRefuser(context)
  const sources = (['folder', 'drives', 'shared'] as const).filter(
    (key) => mountOptions[key] !== undefined && mountOptions[key] !== false,
  )
  if (sources[1] !== undefined)
    refuse(sources[1], '"folder", "drives" and "shared" exclude each other.', 'Write a mount for each.')
  if (mountOptions.clientId !== undefined && mountOptions.key !== undefined)
    refuse('key', 'There are two kinds of credentials.', 'Remove "clientId" or "key".')
  for (const key of ['clientSecret', 'tokenFile'] as const)
    if (mountOptions[key] !== undefined && mountOptions.clientId === undefined)
      refuse(key, 'This key needs "clientId", which is missing.', 'Add "clientId", or remove this key.')
  if (mountOptions.subject !== undefined && mountOptions.key === undefined)
    refuse('subject', 'Only a service account can act for a user.', 'Add the "key" of the account, or remove this key.')
}

function servedCredentials(
  { clientId, tokenFile, key }: Readonly<Record<string, unknown>>,
  { address, folder, servedBy }: FindingContext,
): readonly Finding[] {
  const files = {
    tokenFile: clientId === undefined ? undefined : (tokenFile ?? ownCredentialFiles.driveToken),
    key: (Object(key) as Readonly<Record<string, unknown>>).file,
  }
  return Object.entries(files).flatMap(([name, file]) => {
    const by = typeof file === 'string' ? servedBy(resolveConfigPath(file, folder)) : undefined
    if (by === undefined) return []
    return [
      {
        path: ['mounts', address, ...(name === 'tokenFile' && tokenFile === undefined ? [] : [name])],
        message: `The file ${String(file)} would lie in the folder that ${JSON.stringify(by)} serves.`,
        fix:
          name === 'key'
            ? 'Set "key" to { "file": "…" } with a file in a folder that no mount serves.'
            : `Set "${name}" to a path in a folder that no mount serves, such as "~/.config/hikidashi/${ownCredentialFiles.driveToken}".`,
      },
    ]
  })
}

export const source = defineSourceSchema({
  about: 'Files and documents of Google Drive.',
  shape: gdriveShape,
  check: checkGdrive,
  findings: servedCredentials,
  effects: {
    always: ({ endpoint }) => serviceEffects(endpoint ?? 'Google Drive'),
    options: {
      ...documentEffectRules,
      clientId: secretEffects,
      clientSecret: secretEffects,
      tokenFile: pathEffects,
      key: secretEffects,
      ...withoutEffects(
        'folder drives shared shortcuts subject permissions interval maxFiles maxBytes timeout endpoint',
      ),
    },
  },
})

type GdriveMount = OptionsOf<(typeof source)['shape']>

export const open: OpenSource<typeof source> = async (options, { folder, log, documents }) => {
  const { shortcuts, permissions, interval, maxFiles, maxBytes, timeout, endpoint } = options
  const credentials = await credentialsOf(options, folder)
  const { gdrive } = await import('./index.ts')
  return documents(
    await gdrive({
      credentials,
      what: whatOf(options),
      ...defined({ shortcuts, permissions, intervalMs: interval, maxFiles, maxBytes, timeoutMs: timeout, endpoint }),
      log,
    }),
  )
}

function whatOf({ folder, drives, shared }: GdriveMount) {
  if (folder !== undefined) return { kind: 'folder', id: folder } as const
  if (drives !== undefined) return { kind: 'drives', ...(drives === true ? {} : { ids: drives }) } as const
  return { kind: shared === true ? 'shared' : 'my-drive' } as const
}

async function credentialsOf(options: GdriveMount, folder: string) {
  const { key, subject } = options
  const client = await gdriveOAuthClient(options, folder)
  if (client !== undefined) return { kind: 'person', client, tokenFile: tokenFileOf(options, folder) } as const
  if (key === undefined) return { kind: 'default' } as const
  const text = await readSecret('key', key, folder)
  return { kind: 'service', key: text, ...defined({ subject }) } as const
}

export async function gdriveOAuthClient({ clientId, clientSecret }: GdriveMount, folder: string) {
  if (clientId === undefined) return undefined
  const id = await requireSecret('clientId', clientId, folder)
  const secret = clientSecret === undefined ? undefined : await requireSecret('clientSecret', clientSecret, folder)
  return { id, secret }
}

export function tokenFileOf({ tokenFile = ownCredentialFiles.driveToken }: GdriveMount, folder: string): string {
  return resolveConfigPath(tokenFile, folder)
}
