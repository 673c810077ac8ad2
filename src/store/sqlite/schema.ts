import { refused } from '../failure.ts'
import { type Database, transaction } from './database.ts'

/** What says that a file is ours: "hiki". */
const applicationId = 0x68696b69

/**
 * What makes each version out of the one before. They are never changed once they are released: a new one is added.
 *
 * A key is compared by its UTF-8 bytes, since that is how SQLite keeps text. `sum` is over the value and `seal` over the rest
 * of the row: what the disk has changed is found when it is read.
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
]

/**
 * Makes a database ours, and of this version: all of it or nothing.
 *
 * @throws ResourceError `invalid` where it is another program's, or of a newer version.
 */
export function migrate(database: Database, steps: readonly string[] = migrations): void {
  const version = steps.length
  if (numberOf(database, 'application_id') === applicationId && numberOf(database, 'user_version') === version) return
  transaction(database, () => {
    const found = versionOf(database, version)
    for (const step of steps.slice(found)) database.exec(step)
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
