import { startBucket } from '../buckets.ts'

export async function start() {
  const { store, mount, close } = await startBucket('gcs')
  store.table.put('docs/README.md', '# Sample\n')
  return { mount, close }
}
