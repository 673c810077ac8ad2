import { randomBytes } from 'node:crypto'
import { checksum, startS3 } from '../../test/support/s3-stand-in.ts'

// `s3.ts [KEYS] [BYTES]`: runs the fake of S3 in a separate process, with this number of keys, and an object `large.bin` of this number of
// random bytes. It prints its URL, its bucket and its access keys.

const [count = 0, size = 0] = process.argv.slice(2).map(Number)
const store = await startS3()
for (let i = 0; i < count; i++)
  store.table.put(`group-${i % 10}/folder-${i % 1000}/object-${String(i).padStart(6, '0')}.txt`, `${i}`)
if (size > 0) store.table.put('large.bin', randomBytes(size))
const large = store.table.get('large.bin')
if (large !== undefined) checksum(large.bytes)
// The first listing sorts the keys, which must not be part of the measurement.
store.table.keys()
// Drop the recorded requests, so that they do not fill the memory.
setInterval(() => store.requests.splice(0), 1000).unref()
process.stdout.write(`${JSON.stringify({ url: store.url, keys: store.keys, bucket: store.bucket })}\n`)
process.stdin.resume().on('end', () => process.exit())
