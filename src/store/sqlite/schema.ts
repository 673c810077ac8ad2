import { crc32 } from 'node:zlib'
import { failure, refused } from '../rules.ts'
import { type Database, type SqliteValue, transaction } from './database.ts'

/** Application id that marks a file of hikidashi: "hiki". */
const applicationId = 0x68696b69

/** Statements, or a function that runs them. */
type Migration = string | ((database: Database) => void)

/**
 * Migrations, each from the version before it. A released migration never changes: a new one is added.
 *
 * A key is compared by its UTF-8 bytes, since that is how SQLite keeps text. `sum` is a checksum of the value and `seal` of the
 * rest of the row: a read detects corruption on the disk.
 */
export const migrations: readonly Migration[] = [
  `create table collections (
     id integer primary key,
     name text not null unique,
     revision integer not null,
     removed integer not null,
     rows integer not null,
     bytes integer not null
   ) strict;
   create table rows (
     collection integer not null,
     key text not null,
     revision integer not null,
     created integer not null,
     modified integer not null,
     expires integer,
     bytes integer not null,
     sum integer not null,
     seal integer not null,
     terms text not null,
     value blob not null,
     primary key (collection, key)
   ) strict;
   create unique index rows_by_revision on rows (collection, revision);
   create index rows_by_expiry on rows (collection, expires) where expires is not null;
   create table terms (
     collection integer not null,
     term text not null,
     key text not null,
     primary key (collection, term, key)
   ) strict, without rowid;
   create table leases (
     name text primary key,
     holder text not null,
     expires integer not null
   ) strict, without rowid;`,
  // The terms of a part are tokens separated by spaces, and `ascii` leaves all non-ASCII characters unchanged, so the Unicode
  // version of SQLite does not matter. Ids are never reused, so a stored id always names the same text.
  `create table homes (
     id integer primary key,
     name text not null unique,
     revision integer not null,
     texts integer not null,
     parts integer not null,
     length integer not null,
     bytes integer not null
   ) strict;
   create table texts (
     id integer primary key autoincrement,
     home integer not null,
     key text not null,
     version text not null,
     edition integer not null,
     mount text not null,
     mime text,
     audience text not null,
     priority real,
     modified integer,
     parts integer not null,
     length integer not null,
     bytes integer not null,
     sum integer not null,
     value text not null,
     unique (home, key)
   ) strict;
   create index texts_by_mime on texts (home, mime, key) where mime is not null;
   create table parts (
     id integer primary key autoincrement,
     text integer not null,
     place integer not null,
     length integer not null,
     sum integer not null,
     value text not null
   ) strict;
   create index parts_by_text on parts (text, id);
   create table vectors (
     position integer primary key autoincrement,
     home integer not null,
     part integer not null unique,
     model text not null,
     sum integer not null,
     vector blob not null
   ) strict;
   create index vectors_by_model on vectors (home, model, position);
   create virtual table part_terms using fts5 (
     terms, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '~!._'"
   );
   create virtual table term_parts using fts5vocab (part_terms, row);`,
  makeTermSums,
]

/**
 * Makes a new database ours, or migrates it to this version: completely or not at all.
 *
 * @throws ResourceError `invalid` if it belongs to another program, or is of a newer version.
 */
export function migrate(database: Database, steps: readonly Migration[] = migrations): void {
  const version = steps.length
  if (numberOf(database, 'application_id') === applicationId && numberOf(database, 'user_version') === version) return
  transaction(database, () => {
    const found = versionOf(database, version)
    for (const step of steps.slice(found))
      if (typeof step === 'string') database.exec(step)
      else step(database)
    database.exec(`pragma application_id = ${applicationId}`)
    database.exec(`pragma user_version = ${version}`)
  })
}

function versionOf(database: Database, version: number): number {
  const owner = numberOf(database, 'application_id')
  const isEmpty = database.prepare('select count(*) as n from sqlite_schema').get()?.n === 0
  if (owner !== applicationId && !(owner === 0 && isEmpty))
    throw refused('The file of the store is a database of another program. Name another file.', 'foreign')
  const found = numberOf(database, 'user_version')
  if (found > version)
    throw refused(
      `The store was written by a newer hikidashi: its version is ${found}, and ${version} is known here. Update this one, or name another file.`,
      'newer',
    )
  return found
}

function numberOf(database: Database, pragma: 'application_id' | 'user_version'): number {
  return Number(database.prepare(`pragma ${pragma}`).get()?.[pragma])
}

/** Number of blocks that are read at once. */
const together = 500

/** A block of an id, as two halves: the ids of some blocks are too large for a number of JavaScript. */
const idOf = 'd.id >> 32, d.id & 4294967295'
const idFrom = '(?1 << 32) | ?2'

/** Makes the checksums of all blocks, for a database that has none. */
function makeTermSums(database: Database): void {
  database.exec('create table term_sums (id integer primary key, sum integer not null) strict')
  const put = database.prepare(`insert into term_sums (id, sum) values (${idFrom}, ?3)`)
  for (const { high, low, block } of blocksOf(database)) put.run(high, low, crc32(block))
}

/**
 * Notes in this connection which blocks FTS5 writes and removes. FTS5 keeps its index in blocks without checksums, so it would take changed
 * bytes in one for other numbers of parts.
 *
 * Returns a function that writes the terms of a transaction into their blocks, and stores the checksums of these. Call it last in the
 * transaction.
 */
export function createTermSums(database: Database): () => void {
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
  return () => {
    // FTS5 would write its blocks only at the end of the transaction.
    flush.run()
    for (const [high = 0, low = 0, block] of written()) put.run(high, low, crc32(bytesOf(block)))
    clear.run()
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
    const known = directory.get(leaf.address)
    // FTS5 finds the first block of a segment without the directory, and cuts it while it merges.
    if (!isFirst && !isEntryOf(known, block)) throw failure('damaged', 'the directory of the term index')
  }
  const sums = Number(database.prepare('select count(*) as n from term_sums').get()?.n)
  if (sums !== blocks) throw failure('damaged', 'the blocks of the term index')
}

/** The entries of FTS5's directory: for each block with a first term, the beginning of this term that separates it from those before. */
function directoryOf(database: Database): ReadonlyMap<number, Uint8Array> {
  const rows = database.prepareList('select segid, pgno >> 1, term from part_terms_idx')()
  return new Map(rows.map(([segment, page, term]) => [addressOf(Number(segment), Number(page)), bytesOf(term)]))
}

/** One number for a page of a segment. */
function addressOf(segment: number, page: number): number {
  return segment * 2 ** 31 + page
}

function isEntryOf(entry: Uint8Array | undefined, block: Uint8Array): boolean {
  const term = firstTermOf(block)
  if (entry === undefined || term === undefined) return entry === term
  return Buffer.compare(term.subarray(0, entry.length), entry) === 0
}

/** The address of a block of terms, by the halves of its id (`FTS5_SEGMENT_ROWID` of fts5_index.c). Undefined: it is another kind of block. */
function leafOf(high: number, low: number): { readonly segment: number; readonly address: number } | undefined {
  if (high < 32 || high >= 32 * 65_536 || (high & 31) !== 0 || low >= 2 ** 31) return undefined
  return { segment: high >> 5, address: addressOf(high >> 5, low) }
}

/** The first term that begins in a block: its offset is the first number behind the content, whose length is in the head of the block. */
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

/** All blocks in the order of their ids. */
function* blocksOf(database: Database, withSums = false) {
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

function bytesOf(value: SqliteValue | undefined): Uint8Array {
  return value instanceof Uint8Array ? value : Buffer.from(String(value ?? ''))
}
