import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type GcsStandIn, startGcs } from './gcs-stand-in.ts'
import { type S3StandIn, startS3 } from './s3-stand-in.ts'

/** A bucket in a stand-in store, and its mount in a configuration. */
export interface Bucket<Store> {
  readonly store: Store
  /** The options of the mount. Files with credentials are in a separate folder. */
  readonly mount: Readonly<Record<string, unknown>>
  close(): Promise<void>
}

export async function startBucket(provider: 's3'): Promise<Bucket<S3StandIn>>
export async function startBucket(provider: 'gcs'): Promise<Bucket<GcsStandIn>>
export async function startBucket(provider: 's3' | 'gcs'): Promise<Bucket<S3StandIn | GcsStandIn>>
export async function startBucket(provider: 's3' | 'gcs'): Promise<Bucket<S3StandIn | GcsStandIn>> {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-bucket-'))
  const keep = async (name: string, text: string) => {
    await writeFile(join(folder, name), text, { mode: 0o600 })
    return join(folder, name)
  }
  const store = provider === 's3' ? await startS3() : await startGcs()
  const credentials =
    'keyFile' in store
      ? { keyFile: await keep('key.json', store.keyFile) }
      : {
          accessKeyId: { file: await keep('id', store.keys.accessKeyId) },
          secretAccessKey: { file: await keep('secret', store.keys.secretAccessKey) },
        }
  return {
    store,
    mount: { provider, bucket: store.bucket, endpoint: store.url, ...credentials },
    close: async () => {
      await store.close()
      await rm(folder, { recursive: true })
    },
  }
}
