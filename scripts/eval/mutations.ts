/**
 * Reads damaged copies of documents, and fails if one of them crashes a reader, takes long, or much memory.
 *
 *   npx tsx scripts/eval/mutations.ts FOLDER [COUNT] [EXTENSION,…] [SEED]
 *
 * The small documents of the folder are changed in a few bytes, cut off, or repeated in part; of an archive, one of its parts is
 * as well, and of JSON its values. COUNT, 10,000 by default, is the number of copies of each extension. SEED, 47 by default,
 * makes them the same in each run; with other seeds, 10,000 copies can be made in several runs.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import yauzl from 'yauzl'
import { ZipFile } from 'yazl'
import { isResourceError } from '../../src/core/errors.ts'
import { documentFormatOf } from '../../src/readings/formats.ts'
import { readDocument } from '../../src/readings/worker.ts'

const limits = { characters: 8_000_000, unpacked: 256 * 2 ** 20 }
const [maxSeedBytes, maxSeeds, tooSlowMs, maxPeakMb] = [64 * 1024, 40, 5000, 350]

const [folder, count = '10000', only, seed = '47'] = process.argv.slice(2)

/** Numbers from 0 to below a limit (mulberry32). */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}
const random = createRandom(Number(seed))
const boundaries = [0, 1, 0x7f, 0x80, 0xff]

function mutated(bytes: Buffer): Buffer {
  if (bytes.length < 2) return bytes
  const kind = random(10)
  const at = random(bytes.length)
  if (kind === 0) return bytes.subarray(0, at)
  if (kind === 1) {
    const end = at + random(Math.min(512, bytes.length - at))
    return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)])
  }
  const copy = Buffer.from(bytes)
  for (let count = 1 + random(8); count > 0; count--) {
    const place = random(copy.length)
    copy[place] = kind < 6 ? random(256) : (boundaries[random(boundaries.length)] ?? 0)
  }
  return copy
}

/** The parts of an archive, unpacked. */
function partsOf(bytes: Buffer): Promise<readonly { readonly name: string; readonly data: Buffer }[]> {
  return new Promise((resolve, reject) => {
    const parts: { readonly name: string; readonly data: Buffer }[] = []
    yauzl.fromBuffer(bytes, { lazyEntries: true }, (error, archive) => {
      if (error !== null) return reject(error)
      archive.on('error', reject)
      archive.on('end', () => resolve(parts))
      archive.on('entry', (entry: yauzl.Entry) => {
        if (entry.fileName.endsWith('/')) return archive.readEntry()
        archive.openReadStream(entry, (failure, stream) => {
          if (failure !== null) return reject(failure)
          const pieces: Buffer[] = []
          stream.on('error', reject)
          stream.on('data', (piece: Buffer) => pieces.push(piece))
          stream.on('end', () => {
            parts.push({ name: entry.fileName, data: Buffer.concat(pieces) })
            archive.readEntry()
          })
        })
      })
      archive.readEntry()
    })
  })
}

/** The parts of the archives that were unpacked before. */
const unpacked = new WeakMap<Buffer, ReturnType<typeof partsOf>>()

/** A copy of an archive of which one part is mutated. */
async function mutatedArchive(bytes: Buffer): Promise<Buffer> {
  const known = unpacked.get(bytes) ?? partsOf(bytes)
  unpacked.set(bytes, known)
  const parts = await known
  const chosen = random(parts.length)
  const copy = new ZipFile()
  for (const [index, { name, data }] of parts.entries())
    copy.addBuffer(index === chosen ? mutated(data) : data, name, { compress: false })
  copy.end()
  const pieces: Buffer[] = []
  for await (const piece of copy.outputStream) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

/** Values of other types, in place of the values of a JSON document. */
const others: readonly unknown[] = [
  null,
  true,
  -1,
  1e308,
  '',
  'text',
  '\u0000\ud800',
  [],
  {},
  [[]],
  [null],
  { text: 1 },
]

/** A copy of a JSON document of which some values are replaced, moved or gone. */
function mutatedJson(bytes: Buffer): Buffer {
  const document: unknown = JSON.parse(bytes.toString())
  for (let count = 1 + random(4); count > 0; count--) {
    const holders: Record<string, unknown>[] = []
    const collect = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return
      holders.push(value as Record<string, unknown>)
      for (const inner of Object.values(value)) collect(inner)
    }
    collect(document)
    const holder = holders[random(holders.length)] ?? {}
    const keys = Object.keys(holder)
    const key = keys[random(keys.length || 1)]
    if (key === undefined) continue
    const kind = random(8)
    if (kind === 0) Reflect.deleteProperty(holder, key)
    else if (kind === 1) holder[key] = structuredClone(holders[random(holders.length)])
    else holder[key] = structuredClone(others[random(others.length)])
  }
  return Buffer.from(JSON.stringify(document))
}

if (folder === undefined) throw new Error('Name a folder: npx tsx scripts/eval/mutations.ts FOLDER')
const seeds = new Map<string, string[]>()
for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
  const file = join(folder, path)
  const extension = extname(path).slice(1).toLowerCase()
  const status = statSync(file)
  if (
    documentFormatOf(path, undefined) === undefined ||
    !status.isFile() ||
    status.size > maxSeedBytes ||
    status.size === 0
  )
    continue
  if (only?.split(',').includes(extension) === false) continue
  seeds.set(extension, [...(seeds.get(extension) ?? []), file])
}

console.log(
  '| format | documents | copies | read | refused | crashed | slowest, ms of processor | peak memory of this process, MB |',
)
console.log('|---|---|---|---|---|---|---|---|')
for (const [extension, files] of [...seeds].sort(([a], [b]) => a.localeCompare(b))) {
  const step = Math.max(1, Math.floor(files.length / maxSeeds))
  const chosen = files.filter((_, index) => index % step === 0).slice(0, maxSeeds)
  const format = documentFormatOf(`x.${extension}`, undefined)
  if (format === undefined) continue
  const originals = chosen.map((file) => readFileSync(file))
  const result = { read: 0, refused: 0, crashed: 0, slowestMs: 0 }
  for (let index = 0; index < Number(count); index++) {
    const original = originals[index % originals.length] ?? Buffer.alloc(0)
    const isArchive = original.subarray(0, 2).toString('latin1') === 'PK'
    const isJsonObjectOrArray = extension === 'ipynb'
    const copyOf = async () =>
      isArchive ? mutatedArchive(original) : isJsonObjectOrArray ? mutatedJson(original) : mutated(original)
    const bytes = random(4) > 0 ? await copyOf().catch(() => mutated(original)) : mutated(original)
    const from = process.cpuUsage()
    try {
      await readDocument({ format, form: random(2) === 0 ? 'text' : 'markdown', bytes, limits })
      result.read++
    } catch (error) {
      if (isResourceError(error) && (error.kind === 'invalid' || error.kind === 'too-large')) result.refused++
      else {
        result.crashed++
        if (result.crashed <= 5) console.error(chosen[index % originals.length], index, error)
      }
    }
    const used = process.cpuUsage(from)
    const ms = (used.user + used.system) / 1000
    if (ms > tooSlowMs) console.error(`${chosen[index % originals.length]} ${index}: ${Math.round(ms)} ms`)
    result.slowestMs = Math.max(result.slowestMs, ms)
  }
  const { read, refused, crashed, slowestMs } = result
  // In kilobytes, on every system.
  const peakMb = process.resourceUsage().maxRSS / 1024
  if (crashed > 0 || slowestMs > tooSlowMs || peakMb > maxPeakMb) process.exitCode = 1
  console.log(
    `| \`.${extension}\` | ${chosen.length} | ${count} | ${read} | ${refused} | ${crashed} | ${Math.round(slowestMs)} | ${Math.round(peakMb)} |`,
  )
}
