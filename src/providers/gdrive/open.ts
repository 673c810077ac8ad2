import { defined } from '../../core/kit/defined.ts'
import { namedSecret, requireSecret } from '../../schema/secret.ts'
import { resolveFolder } from '../../schema/values.ts'
import type { OpenSource, OptionsOf } from '../source.ts'
import { defaultTokenFile, type source } from './config.ts'

/** The options of a mount of Drive. */
type GdriveMount = OptionsOf<(typeof source)['shape']>

/** Opens what a mount of Drive serves, as documents. */
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
  const client = await gdriveClient(options, folder)
  if (client !== undefined) return { kind: 'person', client, tokenFile: tokenFileOf(options, folder) } as const
  if (key === undefined) return { kind: 'default' } as const
  const text = await namedSecret('key', key, folder)
  return { kind: 'service', key: text, ...defined({ subject }) } as const
}

/** Returns the OAuth client of a mount; undefined if it has none. */
export async function gdriveClient({ clientId, clientSecret }: GdriveMount, folder: string) {
  if (clientId === undefined) return undefined
  const id = await requireSecret('clientId', clientId, folder)
  const secret = clientSecret === undefined ? undefined : await requireSecret('clientSecret', clientSecret, folder)
  return { id, secret }
}

/** Returns the path of the file with the OAuth tokens of a person. */
export function tokenFileOf({ tokenFile = defaultTokenFile }: GdriveMount, folder: string): string {
  return resolveFolder(tokenFile, folder)
}
