import { crc32 } from 'node:zlib'
import { failure } from '../rules.ts'
import type { Database, Value } from './database.ts'

/**
 * Checksums of the blocks of the term index. FTS5 keeps its index in blocks without checksums, so it would take changed bytes in one for
 * other numbers of parts.
 */
export interface TermSums {
  /** Writes the terms of this transaction into their blocks, and stores the checksums of these. Call it last in the transaction. */
  save(): void
}

/** Number of blocks that are read at once. */
const together = 500

/** A block of an id, as two halves: the ids of some blocks are too large for a number of JavaScript. */
const idOf = 'd.id >> 32, d.id & 4294967295'
const idFrom = '(?1 << 32) | ?2'

/** Makes the checksums of all blocks, for a database that has none. */
export function makeTermSums(database: Database): void {
  database.exec('create table term_sums (id integer primary key, sum integer not null) strict')
  const put = database.prepare(`insert into term_sums (id, sum) values (${idFrom}, ?3)`)
  for (const { high, low, block } of blocksOf(database)) put.run(high, low, crc32(block))
}

/** Notes in this connection which blocks FTS5 writes and removes. */
export function createTermSums(database: Database): TermSums {
  database.execUnprotected(
    `create temp table if not exists written_blocks (id integer primary key);
     create temp trigger if not exists block_written after insert on main.part_terms_data begin
       insert or ignore into written_blocks values (new.id);
     end;
     create temp trigger if not exists block_removed after delete on main.part_terms_data begin
       delete from term_sums where id = old.id;
     end`,
  )
  const flush = database.prepare(`insert into part_terms (part_terms) values ('flush')`)
  const written = database.prepareList(
    `select ${idOf}, d.block from written_blocks w join part_terms_data d on d.id = w.id`,
  )
  const put = database.prepare(`insert or replace into term_sums (id, sum) values (${idFrom}, ?3)`)
  const clear = database.prepare('delete from written_blocks')
  return {
    save: () => {
      // FTS5 would write its blocks only at the end of the transaction.
      flush.run()
      for (const [high = 0, low = 0, block] of written()) put.run(high, low, crc32(bytesOf(block)))
      clear.run()
    },
  }
}

/**
 * Checks every block of the term index, and the directory that leads to them.
 *
 * @throws ResourceError `internal` if the index is damaged.
 */
export function checkTermIndex(database: Database): void {
  const directory = directoryOf(database)
  let segment = 0
  let blocks = 0
  for (const { high, low, block, sum } of blocksOf(database, true)) {
    blocks++
    if (crc32(block) !== sum) throw failure('damaged', 'a block of the term index')
    const leaf = leafOf(high, low)
    if (leaf === undefined) continue
    const isFirst = leaf.segment !== segment
    segment = leaf.segment
    const known = directory.get(leaf.place)
    // FTS5 finds the first block of a segment without the directory, and cuts it while it merges.
    if (!isFirst && !isEntryOf(known, block)) throw failure('damaged', 'the directory of the term index')
  }
  const sums = Number(database.prepare('select count(*) as n from term_sums').get()?.n)
  if (sums !== blocks) throw failure('damaged', 'the blocks of the term index')
}

/** The entries of FTS5's directory: for each block with a first term, the beginning of this term that separates it from those before. */
function directoryOf(database: Database): ReadonlyMap<number, Uint8Array> {
  const rows = database.prepareList('select segid, pgno >> 1, term from part_terms_idx')()
  return new Map(rows.map(([segment, page, term]) => [placeOf(Number(segment), Number(page)), bytesOf(term)]))
}

/** One number for a page of a segment. */
function placeOf(segment: number, page: number): number {
  return segment * 2 ** 31 + page
}

function isEntryOf(entry: Uint8Array | undefined, block: Uint8Array): boolean {
  const term = firstTermOf(block)
  if (entry === undefined || term === undefined) return entry === term
  return Buffer.compare(term.subarray(0, entry.length), entry) === 0
}

/** The place of a block of terms, by the halves of its id (`FTS5_SEGMENT_ROWID` of fts5_index.c). Undefined: it is another kind of block. */
function leafOf(high: number, low: number): { readonly segment: number; readonly place: number } | undefined {
  if (high < 32 || high >= 32 * 65_536 || (high & 31) !== 0 || low >= 2 ** 31) return undefined
  return { segment: high >> 5, place: placeOf(high >> 5, low) }
}

/** The first term that begins in a block: its place is the first number behind the content, whose length is in the head of the block. */
function firstTermOf(block: Uint8Array): Uint8Array | undefined {
  const length = ((block[2] ?? 0) << 8) | (block[3] ?? 0)
  if (length >= block.length) return undefined
  const { value: at } = numberAt(block, length)
  const { value: bytes, end } = numberAt(block, at)
  return block.subarray(end, end + bytes)
}

/** A number of variable length: seven bits in each byte, the highest first; the last byte is less than 128. */
function numberAt(block: Uint8Array, at: number): { readonly value: number; readonly end: number } {
  let value = 0
  for (let index = at; ; index++) {
    const byte = block[index] ?? 0
    value = value * 128 + (byte & 127)
    if (byte < 128) return { value, end: index + 1 }
  }
}

interface Block {
  readonly high: number
  readonly low: number
  readonly block: Uint8Array
  readonly sum: Value
}

/** All blocks in the order of their ids. */
function* blocksOf(database: Database, withSums = false): Generator<Block> {
  const from = withSums ? 'part_terms_data d left join term_sums s on s.id = d.id' : 'part_terms_data d'
  const read = database.prepareList(
    `select ${idOf}, d.block${withSums ? ', s.sum' : ''} from ${from} where d.id > (${idFrom}) order by d.id limit ${together}`,
  )
  let last = { high: 0, low: 0 }
  for (;;) {
    const rows = read(last.high, last.low)
    for (const [high, low, block, stored = null] of rows) {
      last = { high: Number(high), low: Number(low) }
      yield { ...last, block: bytesOf(block), sum: stored }
    }
    if (rows.length < together) return
  }
}

function bytesOf(value: Value | undefined): Uint8Array {
  return value instanceof Uint8Array ? value : Buffer.from(String(value ?? ''))
}
