import { defined } from '../core/kit/defined.ts'
import type { Log } from '../core/log.ts'
import type { Provider } from '../core/provider.ts'
import { providers } from '../providers/index.ts'
import { resolveFolder } from './folder.ts'
import type { Finding } from './problem.ts'
import type { MountConfig } from './schema.ts'
import { namedSecret, requireSecret } from './secret.ts'

export type GdriveConfig = Extract<MountConfig, { readonly provider: 'gdrive' }>

/** Opens what a mount of Drive serves. */
export async function openGdrive(config: GdriveConfig, folder: string, log: Log): Promise<Provider> {
  const { shortcuts, permissions, interval, maxFiles, maxBytes, timeout, endpoint } = config
  const credentials = await credentialsOf(config, folder)
  const { gdrive } = await providers.gdrive()
  return gdrive({
    credentials,
    what: whatOf(config),
    ...defined({ shortcuts, permissions, intervalMs: interval, maxFiles, maxBytes, timeoutMs: timeout, endpoint }),
    log,
  })
}

function whatOf({ folder, drives, shared }: GdriveConfig) {
  if (folder !== undefined) return { kind: 'folder', id: folder } as const
  if (drives !== undefined) return { kind: 'drives', ...(drives === true ? {} : { ids: drives }) } as const
  return { kind: shared === true ? 'shared' : 'my-drive' } as const
}

async function credentialsOf(config: GdriveConfig, folder: string) {
  const { key, subject } = config
  const client = await gdriveClient(config, folder)
  if (client !== undefined) return { kind: 'person', client, tokenFile: tokenFileOf(config, folder) } as const
  if (key === undefined) return { kind: 'default' } as const
  const text = await namedSecret('key', key, folder)
  return { kind: 'service', key: text, ...defined({ subject }) } as const
}

/** The OAuth client of a mount; `undefined` where it has none. */
export async function gdriveClient({ clientId, clientSecret }: GdriveConfig, folder: string) {
  if (clientId === undefined) return undefined
  const id = await requireSecret('clientId', clientId, folder)
  const secret = clientSecret === undefined ? undefined : await requireSecret('clientSecret', clientSecret, folder)
  return { id, secret }
}

const defaultTokenFile = 'gdrive-token.json'

/** Returns the path of the file with the OAuth tokens of a person. */
export function tokenFileOf({ tokenFile = defaultTokenFile }: GdriveConfig, folder: string): string {
  return resolveFolder(tokenFile, folder)
}

/** Credentials that would be served themselves: files of mounts of Drive that lie in a folder of another mount. */
export function gdriveFindings(
  mounts: ReadonlyMap<string, unknown>,
  folder: string,
  servedBy: (file: string) => string | undefined,
): readonly Finding[] {
  return [...mounts].flatMap(([address, mount]) => {
    const { provider, clientId, tokenFile, key } = Object(mount) as Readonly<Record<string, unknown>>
    if (provider !== 'gdrive') return []
    const files = {
      tokenFile: clientId === undefined ? undefined : (tokenFile ?? defaultTokenFile),
      key: (Object(key) as Readonly<Record<string, unknown>>).file,
    }
    return Object.entries(files).flatMap(([name, file]) => {
      const by = typeof file === 'string' ? servedBy(resolveFolder(file, folder)) : undefined
      if (by === undefined) return []
      return [
        {
          path: ['mounts', address, ...(name === 'tokenFile' && tokenFile === undefined ? [] : [name])],
          message: `The file ${String(file)} would lie in the folder that ${JSON.stringify(by)} serves.`,
          fix: `Name one at a place that is not served in "${name}", such as "~/.config/hikidashi/${name === 'key' ? 'key.json' : defaultTokenFile}".`,
        },
      ]
    })
  })
}
