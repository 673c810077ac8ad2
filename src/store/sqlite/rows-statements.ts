import { limits } from '../rules.ts'
import type { Dialect } from '../sql.ts'
import type { Database } from './database.ts'

const head = 'r.key, r.revision, r.created, r.modified, r.expires, r.bytes, r.sum, r.seal, r.terms'
/** Statements of SQLite for the table of rows. */
export const dialect: Dialect = {
  parameter: (n) => `?${n}`,
  table: (name) => name,
  columns: (values) => (values ? `${head}, r.value` : head),
  // A cast of `strftime` would also work, but this is faster.
  now: `cast(unixepoch('subsec') * 1000 as integer)`,
}

export type RowStatements = ReturnType<typeof prepareRows>

/** Prepares the statements of the table of rows. */
export function prepareRows(database: Database) {
  const prepare = (sql: string) => database.prepare(sql)
  return {
    home: prepare('select id, revision, removed, rows, bytes from collections where name = ?'),
    makeHome: prepare('insert into collections (name, revision, removed, rows, bytes) values (?, 0, 0, 0, 0)'),
    saveHome: prepare('update collections set revision = ?, removed = ?, rows = ?, bytes = ? where id = ?'),
    get: prepare(
      `select ${dialect.columns(true)} from rows r where r.collection = (select id from collections where name = ?1)
       and r.key = ?2 and (r.expires is null or r.expires > ?3)`,
    ),
    old: prepare('select key, revision, created, expires, bytes, terms from rows where collection = ? and key = ?'),
    put: prepare(
      `insert into rows (collection, key, revision, created, modified, expires, bytes, sum, seal, terms, value)
       values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       on conflict (collection, key) do update set revision = excluded.revision, created = excluded.created,
         modified = excluded.modified, expires = excluded.expires, bytes = excluded.bytes, sum = excluded.sum,
         seal = excluded.seal, terms = excluded.terms, value = excluded.value`,
    ),
    remove: prepare('delete from rows where collection = ? and key = ?'),
    addTerms: prepare('insert or ignore into terms (collection, term, key) select ?1, value, ?2 from json_each(?3)'),
    removeTerms: prepare(
      'delete from terms where collection = ?1 and key = ?2 and term in (select value from json_each(?3))',
    ),
    expired: prepare(
      `select key, bytes, terms from rows where collection = ?1 and expires is not null and expires <= ?2
       order by expires limit ?3`,
    ),
    oldest: prepare('select key, bytes, terms, modified from rows where collection = ? order by revision limit ?'),
    since: prepare('select key from rows where collection = ?1 and revision > ?2 order by revision limit ?3'),
    // Finds the rows of each term, those with most terms first, and then counts their terms exactly.
    similar: prepare(
      `with home as (select id from collections where name = ?1),
         wanted as (select value as term from json_each(?2)),
         found as (
           select t.key as key, count(*) as shared from wanted w
           cross join terms t on t.collection = (select id from home) and t.term = w.term
             and t.key in (
               select some.key from terms some
               where some.collection = (select id from home) and some.term = w.term limit ${limits.similarRows}
             )
           group by t.key
         ),
         best as (
           select f.key from found f
           cross join rows r on r.collection = (select id from home) and r.key = f.key
           where r.expires is null or r.expires > ?3
           order by f.shared desc, f.key limit 4 * ?4
         )
       select b.key as key, (
         select count(*) from wanted w
         cross join terms t on t.collection = (select id from home) and t.term = w.term and t.key = b.key
       ) as shared
       from best b order by shared desc, b.key limit ?4`,
    ),
    takeLease: prepare(
      `insert into leases (name, holder, expires) values (?1, ?2, ?3)
       on conflict (name) do update set holder = excluded.holder, expires = excluded.expires where leases.expires <= ?4
       returning name`,
    ),
    renewLease: prepare('update leases set expires = ? where name = ? and holder = ? returning name'),
    dropLease: prepare('delete from leases where name = ? and holder = ? returning name'),
  }
}
