import type { SqlDialect } from '../engine.ts'
import { storeLimits } from '../rules.ts'
import type { TextFilter } from '../texts.ts'
import type { Database, SqliteValue } from './database.ts'

const head = 'r.key, r.revision, r.created, r.modified, r.expires, r.bytes, r.sum, r.seal, r.terms'
export const sqliteDialect: SqlDialect = {
  parameter: (n) => `?${n}`,
  table: (name) => name,
  columns: (values) => (values ? `${head}, r.value` : head),
  // A cast of `strftime` would be slower.
  now: `cast(unixepoch('subsec') * 1000 as integer)`,
}

export type RowStatements = ReturnType<typeof prepareRows>

export function prepareRows(database: Database) {
  const prepare = (sql: string) => database.prepare(sql)
  return {
    home: prepare('select id, revision, removed, rows, bytes from collections where name = ?'),
    makeHome: prepare('insert into collections (name, revision, removed, rows, bytes) values (?, 0, 0, 0, 0)'),
    saveHome: prepare('update collections set revision = ?, removed = ?, rows = ?, bytes = ? where id = ?'),
    get: prepare(
      `select ${sqliteDialect.columns(true)} from rows r where r.collection = (select id from collections where name = ?1)
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
    // Takes a limited number of rows of each term, chooses those with most of the terms, and then counts their terms.
    similar: prepare(
      `with home as (select id from collections where name = ?1),
         wanted as (select value as term from json_each(?2)),
         found as (
           select t.key as key, count(*) as shared from wanted w
           cross join terms t on t.collection = (select id from home) and t.term = w.term
             and t.key in (
               select some.key from terms some
               where some.collection = (select id from home) and some.term = w.term limit ${storeLimits.similarRows}
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

export type TextStatements = ReturnType<typeof prepareTexts>

export function prepareTexts(database: Database) {
  const prepare = (sql: string) => database.prepare(sql)
  const lastId = prepare('select last_insert_rowid() as id')
  return {
    lastId: () => Number(lastId.get()?.id),
    home: prepare('select id, revision, texts, parts, length, bytes from homes where name = ?'),
    makeHome: prepare('insert into homes (name, revision, texts, parts, length, bytes) values (?, 0, 0, 0, 0, 0)'),
    saveHome: prepare('update homes set revision = ?, texts = ?, parts = ?, length = ?, bytes = ? where id = ?'),
    old: prepare('select id, parts, length, bytes from texts where home = ? and key = ?'),
    below: prepare('select id, parts, length, bytes from texts where home = ?1 and key >= ?2 and key < ?3 limit ?4'),
    addText: prepare(
      `insert into texts (home, key, version, edition, mount, mime, audience, priority, modified, parts, length, bytes, sum, value)
       values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    addPart: prepare('insert into parts (text, place, length, sum, value) values (?, ?, ?, ?, ?)'),
    addTerms: prepare('insert into part_terms (rowid, terms) values (?, ?)'),
    dropTerms: prepare('delete from part_terms where rowid in (select id from parts where text = ?)'),
    dropVectors: prepare('delete from vectors where part in (select id from parts where text = ?)'),
    dropParts: prepare('delete from parts where text = ?'),
    dropText: prepare('delete from texts where id = ?'),
    list: prepare(
      `select key, version, edition from texts where home = (select id from homes where name = ?1)
       and key > ?2 and key >= ?3 and (?4 is null or key < ?4) and (?6 is null or mime = ?6) order by key limit ?5`,
    ),
    // Jumps from each value to the next (loose index scan), because there are few values with many rows each.
    mimeTypes: prepare(
      `with recursive types(mime) as (
           select min(mime) from texts where home = ?1
           union all select (select min(t.mime) from texts t where t.home = ?1 and t.mime > types.mime) from types
           where types.mime is not null
         )
         select mime from types where mime is not null order by mime`,
    ),
    // The unary plus prevents the index by home, which is not in the order of the ids.
    entries: prepare(
      `select json_group_array(json_array(id, key, mount, parts, length)) as entries from (
         select id, key, mount, parts, length from texts where +home = ?1 and id > ?2 order by id limit ?3
       )`,
    ),
    textIds: prepare('select json_group_array(id) as ids from (select id from texts where home = ? order by id)'),
    idsOfType: prepare('select json_group_array(id) as ids from texts where home = ? and mime = ?'),
    partOwners: prepare(
      `select json_group_array(json_array(text, first, count)) as owners from (
         select text, min(id) as first, count(*) as count from parts where text > ? group by text order by text limit ?
       )`,
    ),
    howMany: prepare('select count(*) as n from texts'),
    counts: prepare(
      `select json_group_array(coalesce(t.doc, 0)) as counts from json_each(?1) j left join term_parts t on t.term = j.value`,
    ),
    countsFrom: database.prepareList('select term, doc from term_parts where term >= ?1 and term <= ?2'),
    ids: prepare('select json_group_array(rowid) as ids from part_terms where part_terms match ?'),
    firstIds: prepare(
      'select json_group_array(id) as ids from (select rowid as id from part_terms where part_terms match ? limit ?)',
    ),
    partsOf: database.prepareList(
      `select p.id, p.text, p.place, p.length, p.sum, p.value from json_each(?1) j cross join parts p on p.id = j.value order by j.key`,
    ),
    textsOfParts: prepare(
      `select json_group_array(json_array(j.key, t.key, t.mount, t.parts)) as texts from json_each(?1) j
       cross join parts p on p.id = j.value cross join texts t on t.id = p.text`,
    ),
    // The values of the checksum come last, in its order.
    textsOf: database.prepareList(
      `select t.id, t.home, t.sum, t.key, t.version, t.edition, t.mount, t.mime, t.audience, t.priority, t.modified,
         t.parts, t.length, t.bytes, t.value from json_each(?1) j cross join texts t on t.id = j.value`,
    ),
    embedded: prepare('select count(*) as n from vectors where home = ?1 and (?2 is null or model = ?2)'),
    unembedded: prepare(
      `select p.id, p.place, p.length, p.sum, p.value from parts p cross join texts t on t.id = p.text
       left join vectors v on v.part = p.id and v.model = ?2
       where t.home = ?1 and p.id > ?3 and v.part is null order by p.id limit ?4`,
    ),
    isOf: prepare('select 1 from parts p join texts t on t.id = p.text where p.id = ? and t.home = ?'),
    dropVector: prepare('delete from vectors where part = ?'),
    addVector: prepare('insert into vectors (home, part, model, sum, vector) values (?, ?, ?, ?, ?)'),
    vectors: prepare(
      `select v.position, v.part, v.sum, v.vector, p.text from vectors v join parts p on p.id = v.part
       where v.home = ? and v.model = ? and v.position > ? order by v.position limit ?`,
    ),
  }
}

/** Returns the SQL that selects, from parts given as JSON, the ones that pass a filter. */
export function filterSql({ mounts, mimeType, audience, minPriority, since }: TextFilter) {
  const values: SqliteValue[] = []
  const value = (bytes: SqliteValue) => `?${values.push(bytes) + 1}`
  const conditions = [
    ...(mounts === undefined ? [] : [`t.mount in (select value from json_each(${value(JSON.stringify(mounts))}))`]),
    ...(mimeType === undefined
      ? []
      : mimeType.endsWith('/*')
        ? [`substr(t.mime, 1, ${mimeType.length - 1}) = ${value(mimeType.slice(0, -1))}`]
        : [`t.mime = ${value(mimeType)}`]),
    ...(audience === undefined ? [] : [`(t.audience = '  ' or instr(t.audience, ${value(` ${audience} `)}) > 0)`]),
    ...(minPriority === undefined ? [] : [`t.priority >= ${value(minPriority)}`]),
    ...(since === undefined ? [] : [`t.modified >= ${value(since)}`]),
  ]
  const sql = `select json_group_array(p.id) as ids from json_each(?1) j cross join parts p on p.id = j.value
    cross join texts t on t.id = p.text where ${['true', ...conditions].join(' and ')}`
  return { sql, values }
}
