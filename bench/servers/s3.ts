import { randomBytes } from 'node:crypto'
import { checksum, startS3 } from '../../test/support/s3-stand-in.ts'

// The stand-in for S3 in a process of its own, with as many keys as the first argument says, and an object `large.bin` of as many random
// bytes as the second one says: it prints its port and its keys.

const [count = 0, size = 0] = process.argv.slice(2).map(Number)
const store = await startS3()
for (let i = 0; i < count; i++)
  store.table.put(`group-${i % 10}/folder-${i % 1000}/object-${String(i).padStart(6, '0')}.txt`, `${i}`)
if (size > 0) store.table.put('large.bin', randomBytes(size))
const large = store.table.get('large.bin')
if (large !== undefined) checksum(large.bytes)
// Their order is made with the first listing, which is not what is measured.
store.table.keys()
// What is counted here is not kept.
setInterval(() => store.requests.splice(0), 1000).unref()
process.stdout.write(`${JSON.stringify({ url: store.url, keys: store.keys, bucket: store.bucket })}\n`)
process.stdin.resume().on('end', () => process.exit())
