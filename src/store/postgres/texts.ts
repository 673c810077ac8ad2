import type { AsPromises, TextOperations } from '../engine.ts'
import { createRowParser, parseListRow, prefixUpperBound } from '../engine.ts'
import { textByteSize } from '../rules.ts'
import type { CheckedText, PartQuery, TextFilter, TextSet } from '../texts.ts'
import type { PostgresRow, RunStatement } from './server.ts'

/** Number of texts that one step of a removal removes. */
const batch = 200

const ofText = { id: Number, key: String, mount: String, parts: Number }
const readEntry = createRowParser({ ...ofText, length: Number })
const readWeighed = createRowParser({ ...ofText, weight: Number })
const readPart = createRowParser({ ...ofText, place: Number, length: Number, value: String, text: String })
const count = (value: unknown) => Number(value ?? 0)
const readSize = createRowParser({
  ...{ texts: count, parts: count, length: count, bytes: count, revision: count },
  ...{ opening: count, embedded: count },
})

export function textOperationsOn(ask: RunStatement, schema: string): AsPromises<TextOperations> {
  const home = `(select id from ${schema}.homes where name = $1)`
  return {
    textsPut: async (name, texts) => {
      await ask(`select ${schema}.put_texts($1, $2::jsonb)`, [name, JSON.stringify(texts.map(toTextRow))])
    },
    textsRemove: async (name, keys) => {
      const single = keys.filter((key) => !key.endsWith('/'))
      const below = keys.filter((key) => key.endsWith('/'))
      const ends = below.map((key) => prefixUpperBound(key) ?? '')
      const values = [name, single, below, ends, batch]
      const [row] = await ask(`select ${schema}.remove_texts($1, $2, $3, $4, $5) as done`, values)
      return row?.done === true
    },
    textsList: async (name, { prefix = '', after = '', mimeType = null, limit }) => {
      const end = prefix === '' ? null : (prefixUpperBound(prefix) ?? null)
      const rows = await ask(
        `select key, version, edition from ${schema}.texts where home = ${home} and key > $2 and key >= $3
         and ($4::text is null or key < $4) and ($6::text is null or mime = $6) order by key limit $5`,
        [name, after, prefix, end, limit, mimeType],
      )
      return rows.map(parseListRow)
    },
    textsEntries: async (name, after, limit) => {
      const rows = await ask(
        `select id, key, mount, parts, length from ${schema}.texts where home = ${home} and id > $2 order by id limit $3`,
        [name, after, limit],
      )
      return rows.map(readEntry)
    },
    textsIds: async (name) => {
      const rows = await ask(`select id from ${schema}.texts where home = ${home} order by id`, [name])
      return rows.map(({ id }) => Number(id))
    },
    textsMimeTypes: async (name, among) => {
      // Jumps from each value to the next (loose index scan), because there are few values with many rows each.
      const rows = await ask(
        `with recursive types(mime) as (
           select min(mime) from ${schema}.texts where home = ${home}
           union all select (select min(t.mime) from ${schema}.texts t where t.home = ${home} and t.mime > types.mime) from types
           where types.mime is not null
         )
         select mime from types where mime is not null ${
           among === undefined
             ? ''
             : `and exists (
                  select 1 from ${schema}.texts t where t.home = ${home} and t.mime = types.mime
                  and ${inSetSql('t.id', '$2', '$3')}
                )`
         } order by mime`,
        [name, ...(among === undefined ? [] : setValues(among))],
      )
      return rows.map(({ mime }) => String(mime))
    },
    textsCounts: async (name, terms, among) => {
      const within = among === undefined ? '' : `and ${inSetSql('p.text', '$3', '$4')}`
      const rows = await ask(
        `select (select count(*) from ${schema}.parts p where p.terms @@ ${termQuerySql(home, 'w.term', false)} ${within}) as n
         from unnest($2::text[]) with ordinality w(term, i) order by w.i`,
        [name, terms, ...(among === undefined ? [] : setValues(among))],
      )
      return rows.map(({ n }) => Number(n))
    },
    ...findingOn(ask, schema, home),
    textsRead: async (name, ids) => {
      const rows = await ask(
        `select p.id, t.key, t.mount, p.place, p.length, p.value, t.value as text, t.parts
         from unnest($2::bigint[]) with ordinality w(id, i) join ${schema}.parts p on p.id = w.id
         join ${schema}.texts t on t.id = p.text and t.home = ${home} order by w.i`,
        [name, ids],
      )
      return rows.map(readPart)
    },
    textsSize: async (name, model) => {
      const [row] = await ask(
        `select h.texts, h.parts, h.length, h.bytes, h.revision, h.tableoid::bigint as opening,
           (select count(*) from ${schema}.vectors v where v.home = h.id and ($2::text is null or v.model = $2)) as embedded
         from ${schema}.homes h where h.name = $1`,
        [name, model ?? null],
      )
      return readSize(row ?? {})
    },
    ...vectorsOn(ask, schema, home),
  }
}

function findingOn(
  ask: RunStatement,
  schema: string,
  home: string,
): Pick<AsPromises<TextOperations>, 'textsFind' | 'textsWeigh'> {
  return {
    textsFind: async (name, query) => {
      const { sql, values } = findSql(schema, home, name, query)
      return (await ask(sql, values)).map(({ id }) => Number(id))
    },
    textsWeigh: async (name, query) => {
      const { sql, values } = findSql(schema, home, name, query)
      const rows = await ask(
        `select f.id, f.weight, t.key, t.mount, t.parts from (${sql}) f join ${schema}.parts p on p.id = f.id
         join ${schema}.texts t on t.id = p.text order by f.weight desc, f.id`,
        values,
      )
      return rows.map(readWeighed)
    },
  }
}

type VectorOperations = Pick<AsPromises<TextOperations>, 'textsUnembedded' | 'textsEmbed' | 'textsVectors'>

function vectorsOn(ask: RunStatement, schema: string, home: string): VectorOperations {
  return {
    textsUnembedded: async (name, model, after, limit) => {
      const rows = await ask(
        `select p.id, p.value from ${schema}.parts p join ${schema}.texts t on t.id = p.text
         where t.home = ${home} and p.id > $3
           and not exists (select 1 from ${schema}.vectors v where v.part = p.id and v.model = $2)
         order by p.id limit $4`,
        [name, model, after, limit],
      )
      return rows.map(({ id, value }) => ({ id: Number(id), value: String(value) }))
    },
    textsEmbed: async (name, model, vectors) => {
      await ask(`select ${schema}.embed($1, $2, $3, $4)`, [
        name,
        model,
        vectors.map(({ id }) => id),
        vectors.map(({ vector }) => Buffer.from(vector)),
      ])
    },
    textsVectors: async (name, model, after, limit) => {
      const rows = await ask(
        `select v.position, v.part, v.vector, p.text from ${schema}.vectors v join ${schema}.parts p on p.id = v.part
         where v.home = ${home} and v.model = $2 and v.position > $3 order by v.position limit $4`,
        [name, model, after, limit],
      )
      return rows.map(({ position, part, text, vector }: PostgresRow) => ({
        order: Number(position),
        id: Number(part),
        text: Number(text),
        vector: vector instanceof Uint8Array ? new Uint8Array(vector) : new Uint8Array(),
      }))
    },
  }
}

/** Converts a text to the form that the SQL function `put_texts` takes. */
function toTextRow(text: CheckedText) {
  const { key, version, edition, labels, value, parts } = text
  const { mount, mimeType = null, audience = [], priority = null, modified = null } = labels
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const own = { key, version, edition, mount, mime: mimeType, audience, priority, modified, value }
  const split = parts.map((part) => ({ ...part, terms: part.terms === '' ? [] : part.terms.split(' ') }))
  return { ...own, length, bytes: textByteSize(text), parts: split }
}

/** A term as a query of one lexeme. The part before the `~` names the collection of the term. */
function termQuerySql(home: string, term: string, prefix: boolean): string {
  return `('''' || ${home} || '~' || ${term} || '''${prefix ? ':*' : ''}')::tsquery`
}

/** Whether a set of texts has an id. PostgreSQL numbers the bits of a byte from the lowest, as a {@link TextSet} does. */
function inSetSql(id: string, bits: string, first: string): string {
  const bit = `(${id} - ${first}::bigint)`
  // A CASE is evaluated in order, so no bit outside the set is read.
  return `case when ${bit} >= 0 and ${bit} < 8 * octet_length(${bits}::bytea)
    then get_bit(${bits}::bytea, ${bit}::integer) = 1 else false end`
}

function setValues({ bits, first }: TextSet): readonly [Buffer, number] {
  return [Buffer.from(bits), first]
}

function findSql(schema: string, home: string, name: string, { terms, where, among, limit }: PartQuery) {
  const values: unknown[] = [name]
  const value = (value: unknown, type: string) => `$${values.push(value)}::${type}`
  const [bits, first] = among === undefined ? [] : setValues(among)
  const isSeen = among === undefined ? '' : `and ${inSetSql('p.text', value(bits, 'bytea'), value(first, 'bigint'))}`
  const lists = [false, true].map((prefix) => {
    const some = terms.filter((term) => (term.prefix === true) === prefix)
    const names = value(
      some.map(({ term }) => term),
      'text[]',
    )
    const weights = value(
      some.map(({ weight }) => weight),
      'bigint[]',
    )
    return `select p.id, w.weight from unnest(${names}, ${weights}) w(term, weight)
      cross join lateral (
        select p.id from ${schema}.parts p where p.terms @@ ${termQuerySql(home, 'w.term', prefix)} ${isSeen}
      ) p`
  })
  const filter = where === undefined ? '' : filterSql(schema, where, value)
  const sql = `select f.id, sum(f.weight) as weight from (${lists.join(' union all ')}) f ${filter}
    group by f.id order by weight desc, f.id limit ${value(limit, 'bigint')}`
  return { sql, values }
}

function filterSql(schema: string, where: TextFilter, value: (given: unknown, type: string) => string): string {
  const { mounts, mimeType, audience, minPriority, since } = where
  const conditions = [
    ...(mounts === undefined ? [] : [`t.mount = any (${value(mounts, 'text[]')})`]),
    ...(mimeType === undefined
      ? []
      : mimeType.endsWith('/*')
        ? [`starts_with(t.mime, ${value(mimeType.slice(0, -1), 'text')})`]
        : [`t.mime = ${value(mimeType, 'text')}`]),
    ...(audience === undefined ? [] : [`(t.audience = '{}' or ${value(audience, 'text')} = any (t.audience))`]),
    ...(minPriority === undefined ? [] : [`t.priority >= ${value(minPriority, 'float8')}`]),
    ...(since === undefined ? [] : [`t.modified >= ${value(since, 'bigint')}`]),
  ]
  return `join ${schema}.parts p on p.id = f.id join ${schema}.texts t on t.id = p.text
    where ${['true', ...conditions].join(' and ')}`
}
