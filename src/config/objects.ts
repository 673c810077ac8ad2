import { invalid } from '../core/errors.ts'
import { defined } from '../core/kit/defined.ts'
import type { Log } from '../core/log.ts'
import type { Provider } from '../core/provider.ts'
import { providers } from '../providers/index.ts'
import { resolveFolder } from './folder.ts'
import type { MountConfig } from './schema.ts'
import { namedSecret, type SecretSource } from './secret.ts'

type S3Config = Extract<MountConfig, { readonly provider: 's3' }>
type GcsConfig = Extract<MountConfig, { readonly provider: 'gcs' }>

/** Opens a bucket of S3, as its mount says. */
export async function openS3(config: S3Config, folder: string, log: Log): Promise<Provider> {
  const { accessKeyId, secretAccessKey, sessionToken, endpoint, insecure, region, pathStyle, profile } = config
  const { anonymous, requesterPays } = config
  const keys = await keysIn({ accessKeyId, secretAccessKey, sessionToken }, folder)
  const { s3 } = await providers.s3()
  return s3({
    ...bucketOptions(config),
    ...defined({ endpoint, insecure, region, pathStyle, keys, profile, anonymous, requesterPays }),
    log,
  })
}

/** Opens a bucket of Google Cloud Storage, as its mount says. */
export async function openGcs(config: GcsConfig, folder: string, log: Log): Promise<Provider> {
  const { endpoint, insecure, keyFile, userProject, anonymous } = config
  const options = bucketOptions(config)
  const { gcs } = await providers.gcs()
  return gcs({
    ...options,
    ...defined({ endpoint, insecure }),
    ...(keyFile === undefined ? {} : { keyFile: resolveFolder(keyFile, folder) }),
    ...defined({ userProject, anonymous }),
    log,
  })
}

/** @throws ResourceError `invalid` for links past what looks for secrets. */
function bucketOptions({ bucket, prefix, maxBytes, links, timeout, redact = 'off' }: S3Config | GcsConfig) {
  if (links !== undefined && redact !== 'off')
    throw invalid('A link leads past "redact": what it shows is not looked through. Remove one of the two.', 'links')
  return {
    bucket,
    ...defined({ prefix, maxBytes, linkMs: links, timeoutMs: timeout }),
  }
}

interface KeySources {
  readonly accessKeyId: SecretSource | undefined
  readonly secretAccessKey: SecretSource | undefined
  readonly sessionToken: SecretSource | undefined
}

async function keysIn({ accessKeyId, secretAccessKey, sessionToken }: KeySources, folder: string) {
  if (accessKeyId === undefined && secretAccessKey === undefined && sessionToken === undefined) return undefined
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw invalid('An access key has two parts. Add "accessKeyId" and "secretAccessKey", or remove them.', 'keys')
  const token = sessionToken === undefined ? undefined : await namedSecret('sessionToken', sessionToken, folder)
  return {
    accessKeyId: await namedSecret('accessKeyId', accessKeyId, folder),
    secretAccessKey: await namedSecret('secretAccessKey', secretAccessKey, folder),
    ...defined({ sessionToken: token }),
  }
}
