import { createHash, randomBytes } from 'node:crypto'
import {
  type LongResult,
  type LongResultBounds,
  type LongResults,
  type ResultFileMetadata,
  resultFileMetadata,
  resultsToRemove,
  type SizedResult,
  totalFileBytes,
} from '../core/shared.ts'
import { storeLimits } from './rules.ts'
import { type Collection, type NewRow, type Row, rowsIn, type Store } from './store.ts'

/** The collection of the results. A result has one row for itself, and one row for the content of each file. */
const collection = 'spill'
/** Beginnings of the keys of the two kinds of rows. The next parts of a key are the owner and the id of the result. */
const [ofFacts, ofBodies] = ['facts/', 'bodies/']
/** The index term of a content that is text. */
const textTerm = 'text'
/** Difference of the clocks of this process and of the store above which an expiry is corrected, in milliseconds. */
const maxSkewMs = 1000
/** Maximum time until expired rows are removed, in milliseconds. */
const maxSweepMs = 600_000
/** Number of rows that are read at once. */
const page = 1000
const idForm = /^[\w-]{22}$/

interface Facts {
  readonly bytes: number
  readonly files: readonly ResultFileMetadata[]
}

interface StoredResult extends SizedResult {
  readonly owner: string
  readonly names: readonly string[]
  readonly revision: number
}

/**
 * Keeps long results in a store, shared by the processes with the same store. A result is written before old ones are removed, so that the
 * limits hold.
 *
 * @param now The wall clock of this process, in milliseconds since 1970.
 */
export function resultsInStore(store: Store, bounds: LongResultBounds, now: () => number = Date.now): LongResults {
  const rows = store.collection(collection)
  const write = writerFor(rows, bounds.keepMs, now)
  const sweep = () => void rows.evict({}).catch(() => {})
  const timer = setInterval(sweep, Math.min(maxSweepMs, Math.max(60_000, bounds.keepMs)))
  timer.unref()

  const remove = async ({ owner, id, names }: Pick<StoredResult, 'owner' | 'id' | 'names'>): Promise<void> => {
    await rows.delete(`${ofFacts}${owner}/${id}`)
    for (const name of names) await rows.delete(bodyKey(owner, id, name))
  }
  const keptByAll = async (): Promise<readonly StoredResult[]> => {
    const storedResults = (await listed(rows, ofFacts)).map((row): StoredResult => {
      const [, owner = '', id = ''] = row.key.split('/')
      const { bytes, files } = factsIn(row)
      return { id, owner, bytes, names: files.map(({ name }) => name), revision: row.revision }
    })
    return storedResults.sort((a, b) => a.revision - b.revision)
  }

  return {
    put: async (principal, files) => {
      const bytes = totalFileBytes(files)
      if (bytes > Math.min(bounds.maxBytes, bounds.maxTotalBytes, storeLimits.value)) return undefined
      const owner = ownerOf(principal)
      const id = randomBytes(16).toString('base64url')
      for (const { name, body } of files) {
        const terms = typeof body === 'string' ? [textTerm] : []
        await write({ key: bodyKey(owner, id, name), value: Buffer.from(body), terms })
      }
      // The facts are written last: a result that can be found has all its contents.
      const facts: Facts = { bytes, files: files.map(resultFileMetadata) }
      const row = await write({ key: `${ofFacts}${owner}/${id}`, value: Buffer.from(JSON.stringify(facts)) })
      await rows.evict({})
      const others = (await keptByAll()).filter((one) => one.id !== id)
      for (const one of resultsToRemove(others, { owner, bytes }, bounds)) await remove(one)
      return resultOf(row)
    },
    list: async (principal) => {
      const resultRows = await listed(rows, `${ofFacts}${ownerOf(principal)}/`)
      return resultRows.sort((a, b) => a.revision - b.revision).map(resultOf)
    },
    get: async (principal, id) => {
      const row = idForm.test(id) ? await rows.get(`${ofFacts}${ownerOf(principal)}/${id}`) : undefined
      return row === undefined ? undefined : resultOf(row)
    },
    body: async (principal, id, name) => {
      const row = await rows.get(bodyKey(ownerOf(principal), id, name))
      return row?.terms.includes(textTerm) ? Buffer.from(row.value).toString() : row?.value
    },
    close: async () => clearInterval(timer),
  }
}

/**
 * Returns a function that writes rows with an expiry time. The store uses its own clock, so the difference to the clock of this process is
 * corrected by the time of the written row.
 */
function writerFor(rows: Collection, keepMs: number, now: () => number): (row: NewRow) => Promise<Row> {
  let skew = 0
  const putRow = async (row: NewRow, expires: number): Promise<Row> => {
    const newRow = await rows.put({ ...row, expires })
    if (newRow === undefined) throw new Error('The store wrote no row, although the write has no condition.')
    return newRow
  }
  return async (row) => {
    const expires = now() + skew + keepMs
    const newRow = await putRow(row, expires)
    const off = newRow.modified + keepMs - expires
    if (Math.abs(off) <= maxSkewMs) return newRow
    skew += off
    return putRow(row, expires + off)
  }
}

async function listed(rows: Collection, prefix: string): Promise<Row[]> {
  const foundRows: Row[] = []
  for await (const row of rowsIn(rows, { prefix, limit: page, values: true })) foundRows.push(row)
  return foundRows
}

/** The name of a principal in keys: a digest, because ids may have any length and any characters. */
function ownerOf(principal: string): string {
  return createHash('sha256').update(principal).digest('base64url')
}

function bodyKey(owner: string, id: string, name: string): string {
  return `${ofBodies}${owner}/${id}/${name}`
}

function factsIn({ value }: Row): Facts {
  return JSON.parse(Buffer.from(value).toString()) as Facts
}

function resultOf(row: Row): LongResult {
  return {
    id: row.key.slice(row.key.lastIndexOf('/') + 1),
    made: row.created,
    expires: row.expires ?? row.created,
    files: factsIn(row).files,
  }
}
