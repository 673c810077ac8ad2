import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import { namedSecret, type SecretSource } from '../../schema/secret.ts'
import { bucketOptions } from '../objects/mount.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'

/** Opens a bucket of S3, whose objects are documents. */
export const open: OpenSource<typeof source> = async (options, { folder, log, documents }) => {
  const { accessKeyId, secretAccessKey, sessionToken, endpoint, insecure, region, pathStyle, profile } = options
  const { anonymous, requesterPays } = options
  const keys = await keysIn({ accessKeyId, secretAccessKey, sessionToken }, folder)
  const { s3 } = await import('./index.ts')
  return documents(
    await s3({
      ...bucketOptions(options),
      ...defined({ endpoint, insecure, region, pathStyle, keys, profile, anonymous, requesterPays }),
      log,
    }),
  )
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
