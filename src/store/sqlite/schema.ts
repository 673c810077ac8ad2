import { valueError } from '../rules.ts'
import { type Database, transaction } from './database.ts'

/** Application id that marks a file of hikidashi: "hiki". */
const applicationId = 0x68696b69

/**
 * Migrations, each from the version before it. A released migration never changes: a new one is added. `sum` is a checksum of the value and
 * `seal` of the rest of the row: a read detects corruption on the disk.
 */
export const migrations: readonly string[] = [
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
  // `ascii` leaves non-ASCII characters unchanged, so the Unicode version of SQLite does not matter.
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
  // Changes no tables, but keeps the numbering: a file of version 3 may have the unused table `term_sums`.
  '',
]

/**
 * Creates the schema of the store in a new database, or migrates it to this version.
 *
 * @throws ResourceError `invalid` if it belongs to another program, or is of a newer version.
 */
export function migrate(database: Database, steps: readonly string[] = migrations): void {
  const version = steps.length
  if (readPragma(database, 'application_id') === applicationId && readPragma(database, 'user_version') === version)
    return
  transaction(database, () => {
    const schemaVersion = readSchemaVersion(database, version)
    for (const step of steps.slice(schemaVersion)) database.exec(step)
    database.exec(`pragma application_id = ${applicationId}`)
    database.exec(`pragma user_version = ${version}`)
  })
}

function readSchemaVersion(database: Database, version: number): number {
  const owner = readPragma(database, 'application_id')
  const isEmpty = database.prepare('select count(*) as n from sqlite_schema').get()?.n === 0
  if (owner !== applicationId && !(owner === 0 && isEmpty))
    throw valueError('The file of the store is a database of another program. Name another file.', 'configuration')
  const value = readPragma(database, 'user_version')
  if (value > version)
    throw valueError(
      `A newer hikidashi wrote the store: its version is ${value}, and this hikidashi reads up to ${version}. Update hikidashi, or name another file.`,
      'configuration',
    )
  return value
}

function readPragma(database: Database, pragma: 'application_id' | 'user_version'): number {
  return Number(database.prepare(`pragma ${pragma}`).get()?.[pragma])
}
