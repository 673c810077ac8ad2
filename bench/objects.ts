import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { CreateBucketCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { createCatalog } from '../src/core/catalog.ts'
import type { View } from '../src/core/view.ts'
import { s3 } from '../src/providers/s3/index.ts'
import { cephReason, hasCeph, startCeph } from '../test/support/ceph.ts'
import { fixed, median, progress, table } from './support.ts'

// Lists 100,000 keys of a bucket page by page: with the bare client, a thousand keys at a time, and through a view. The store is a fake in a
// separate process, and, if it is installed, a gateway of Ceph with fewer keys, because writing keys to it is slow. Opening is not
// measured. The two run in turns, and ratios are taken within a round. The first argument is the number of rounds, the second the number
// of keys in Ceph.

const rounds = Number(process.argv[2] ?? 7)
const cephKeys = Number(process.argv[3] ?? 20_000)

interface Place {
  readonly url: string
  readonly bucket: string
  readonly keys: { readonly accessKeyId: string; readonly secretAccessKey: string }
}

function clientOf({ url, keys }: Place): S3Client {
  return new S3Client({ endpoint: url, region: 'us-east-1', forcePathStyle: true, credentials: keys })
}

async function listBare(client: S3Client, { bucket }: Place): Promise<{ count: number; requests: number }> {
  let count = 0
  let requests = 0
  let token: string | undefined
  do {
    const page = await client.send(
      new ListObjectsV2Command({
        ...{ Bucket: bucket, EncodingType: 'url' },
        ...(token === undefined ? {} : { ContinuationToken: token }),
      }),
    )
    requests++
    for (const { Key = '' } of page.Contents ?? []) count += decodeURIComponent(Key.replaceAll('+', ' ')) === '' ? 0 : 1
    token = page.NextContinuationToken
  } while (token !== undefined)
  return { count, requests }
}

async function listPages(view: View): Promise<{ count: number; pages: number }> {
  let count = 0
  let pages = 0
  let cursor: string | undefined
  do {
    const page = await view.list(cursor === undefined ? {} : { cursor })
    count += page.items.length
    pages++
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return { count, pages }
}

async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; value: T }> {
  const start = performance.now()
  const value = await work()
  return { ms: performance.now() - start, value }
}

async function compare(name: string, place: Place, count: number): Promise<readonly (string | number)[]> {
  const client = clientOf(place)
  const provider = await s3({ endpoint: place.url, bucket: place.bucket, keys: place.keys })
  const catalog = createCatalog({ mounts: [{ address: 's3://bench', provider }] })
  const view = catalog.view({ id: 'bench', roles: [] })
  const [bare, paged, ratios]: [number[], number[], number[]] = [[], [], []]
  let pages = 0
  for (let round = -1; round < rounds; round++) {
    const first = round % 2 === 0
    const ours = first ? await timed(() => listPages(view)) : undefined
    const theirs = await timed(() => listBare(client, place))
    const done = ours ?? (await timed(() => listPages(view)))
    if (theirs.value.count !== count || done.value.count !== count)
      throw new Error(`${name}: ${theirs.value.count} and ${done.value.count} keys are listed, of ${count}`)
    pages = done.value.pages
    progress(`${name} ${round}: bare ${fixed(theirs.ms, 0)} ms, paged ${fixed(done.ms, 0)} ms`)
    // The first round does not count, because V8 compiles the code.
    if (round < 0) continue
    bare.push(theirs.ms)
    paged.push(done.ms)
    ratios.push(done.ms / theirs.ms)
  }
  client.destroy()
  await catalog.close()
  return [name, count, pages, fixed(median(bare), 0), fixed(median(paged), 0), `${fixed(median(ratios), 2)} x`]
}

async function againstStandIn(): Promise<readonly (string | number)[]> {
  const count = 100_000
  const file = fileURLToPath(new URL('servers/s3.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', file, String(count)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  try {
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
    return await compare('stand-in', JSON.parse(line) as Place, count)
  } finally {
    child.stdin.end()
  }
}

async function againstCeph(): Promise<readonly (string | number)[]> {
  const ceph = await startCeph()
  try {
    const place = { url: ceph.url, keys: ceph.keys, bucket: 'bench' }
    const client = clientOf(place)
    await client.send(new CreateBucketCommand({ Bucket: place.bucket }))
    for (let at = 0; at < cephKeys; at += 100)
      await Promise.all(
        Array.from({ length: Math.min(100, cephKeys - at) }, (_, i) =>
          client.send(new PutObjectCommand({ Bucket: place.bucket, Key: `folder-${at % 1000}/${at + i}`, Body: 'x' })),
        ),
      )
    client.destroy()
    return await compare('Ceph 16', place, cephKeys)
  } finally {
    await ceph.close()
  }
}

const rows = [await againstStandIn()]
if (hasCeph) rows.push(await againstCeph())
else progress(`Ceph is left out: ${cephReason}`)
const head = ['store', 'keys', 'pages', 'bare client, ms', 'page by page, ms', 'ratio, median']
process.stdout.write(`${table(head, rows)}\n`)
