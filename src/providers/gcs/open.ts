import { defined } from '../../core/kit/defined.ts'
import { resolveFolder } from '../../schema/values.ts'
import { bucketOptions } from '../objects/mount.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'

/** Opens a bucket of Google Cloud Storage, whose objects are documents. */
export const open: OpenSource<typeof source> = async (given, { folder, log, documents }) => {
  const { endpoint, insecure, keyFile, userProject, anonymous } = given
  const options = bucketOptions(given)
  const { gcs } = await import('./index.ts')
  const key = keyFile === undefined ? undefined : resolveFolder(keyFile, folder)
  return documents(
    await gcs({ ...options, ...defined({ endpoint, insecure, keyFile: key, userProject, anonymous }), log }),
  )
}
