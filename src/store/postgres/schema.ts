import { failure, refused } from '../rules.ts'
import type { Ask } from './server.ts'
import { textsMigration } from './texts-schema.ts'

/**
 * Migrations, each from the version before it. A released migration never changes: a new one is added.
 *
 * Every write is an SQL function, so that it is one round trip and one transaction. It first locks the row of its collection:
 * the writes of a collection are serialized, and become visible in the order of their revisions.
 */
function migrations(schema: string, channel: string): readonly string[] {
  const rows = [tablesSql(schema), writesSql(schema, channel), removalsSql(schema)].join('\n\n')
  return [rows, textsMigration(schema)]
}

/** Tables of rows, and the common beginning of every write. */
function tablesSql(schema: string): string {
  return `create table ${schema}.collections (
       id integer generated always as identity primary key,
       name text collate "C" not null unique,
       revision bigint not null default 0,
       rows bigint not null default 0,
       bytes bigint not null default 0
     );
     create table ${schema}.rows (
       collection integer not null,
       key text collate "C" not null,
       revision bigint not null,
       created bigint not null,
       modified bigint not null,
       expires bigint,
       terms text[] not null,
       value bytea not null,
       primary key (collection, key)
     );
     create unique index on ${schema}.rows (collection, revision);
     create index on ${schema}.rows (collection, expires) where expires is not null;
     create table ${schema}.terms (
       collection integer not null,
       term text collate "C" not null,
       key text collate "C" not null,
       primary key (collection, term, key)
     );
     create table ${schema}.leases (
       name text collate "C" primary key,
       holder text not null,
       expires bigint not null
     );

     create function ${schema}.now_ms() returns bigint language sql volatile as $$
       select floor(extract(epoch from clock_timestamp()) * 1000)::bigint
     $$;

     create function ${schema}.home(_name text) returns ${schema}.collections language plpgsql as $$
     declare
       _home ${schema}.collections;
     begin
       select * into _home from ${schema}.collections c where c.name = _name for update;
       if _home.id is null then
         insert into ${schema}.collections (name) values (_name) on conflict do nothing;
         select * into _home from ${schema}.collections c where c.name = _name for update;
       end if;
       return _home;
     end $$;`
}

/** Notifications, and writing a row. */
function writesSql(schema: string, channel: string): string {
  return `-- A notification has less than 8000 bytes: without its keys it means that anything may have changed.
     create function ${schema}.tell(_collection text, _keys text[]) returns void language plpgsql as $$
     declare
       _news text := json_build_object('collection', _collection, 'keys', _keys);
     begin
       if octet_length(_news) > 7900 then _news := json_build_object('collection', _collection); end if;
       perform pg_notify('${channel}', _news);
     end $$;

     create function ${schema}.put(
       _collection text, _key text, _value bytea, _expires bigint, _terms text[], _absent boolean, _expected bigint
     ) returns table (revision bigint, created bigint, modified bigint) language plpgsql as $$
     #variable_conflict use_column
     declare
       _home ${schema}.collections;
       _now bigint;
       _old record;
       _live boolean;
       _revision bigint;
       _created bigint;
     begin
       _home := ${schema}.home(_collection);
       _now := ${schema}.now_ms();
       select r.revision, r.created, r.expires, r.terms, octet_length(r.value) as bytes into _old
         from ${schema}.rows r where r.collection = _home.id and r.key = _key;
       _live := _old.revision is not null and (_old.expires is null or _old.expires > _now);
       if _absent and _live then return; end if;
       if _expected is not null and not (_live and _old.revision = _expected) then return; end if;
       _revision := greatest(_home.revision + 1, _now);
       _created := case when _live then _old.created else _now end;
       insert into ${schema}.rows as r (collection, key, revision, created, modified, expires, terms, value)
         values (_home.id, _key, _revision, _created, _now, _expires, _terms, _value)
         on conflict (collection, key) do update set revision = excluded.revision, created = excluded.created,
           modified = excluded.modified, expires = excluded.expires, terms = excluded.terms, value = excluded.value;
       if _terms is distinct from coalesce(_old.terms, '{}') then
         delete from ${schema}.terms t
           where t.collection = _home.id and t.key = _key and t.term = any (coalesce(_old.terms, '{}'));
         insert into ${schema}.terms (collection, term, key) select _home.id, term, _key from unnest(_terms) term;
       end if;
       update ${schema}.collections c set revision = _revision,
         rows = c.rows + case when _old.revision is null then 1 else 0 end,
         bytes = c.bytes + octet_length(_value) - coalesce(_old.bytes, 0)
         where c.id = _home.id;
       perform ${schema}.tell(_collection, array[_key]);
       return query select _revision, _created, _now;
     end $$;`
}

/** Removing rows: by their keys, and by the bounds of a collection. */
function removalsSql(schema: string): string {
  return `create function ${schema}.remove(_home ${schema}.collections, _keys text[]) returns void language plpgsql as $$
     declare
       _rows bigint;
       _bytes bigint;
     begin
       with gone as (
         delete from ${schema}.rows r where r.collection = _home.id and r.key = any (_keys)
         returning r.key, r.terms, octet_length(r.value) as bytes
       ), unnamed as (
         delete from ${schema}.terms t using (select g.key, term from gone g, unnest(g.terms) term) g
         where t.collection = _home.id and t.term = g.term and t.key = g.key
       )
       select count(*), coalesce(sum(g.bytes), 0) into _rows, _bytes from gone g;
       update ${schema}.collections c set revision = greatest(c.revision + 1, ${schema}.now_ms()),
         rows = c.rows - _rows, bytes = c.bytes - _bytes where c.id = _home.id;
       perform ${schema}.tell(_home.name, _keys);
     end $$;

     create function ${schema}.delete(
       _collection text, _key text, _absent boolean, _expected bigint
     ) returns boolean language plpgsql as $$
     declare
       _home ${schema}.collections;
       _old record;
       _live boolean;
     begin
       _home := ${schema}.home(_collection);
       select r.revision, r.expires into _old from ${schema}.rows r where r.collection = _home.id and r.key = _key;
       if _old.revision is null then return false; end if;
       _live := _old.expires is null or _old.expires > ${schema}.now_ms();
       if _live and (_absent or _old.revision <> coalesce(_expected, _old.revision)) then return false; end if;
       perform ${schema}.remove(_home, array[_key]);
       return _live;
     end $$;

     -- A part of an eviction: what has expired, else what is too old, else what is too much.
     create function ${schema}.evict(
       _collection text, _rows bigint, _bytes bigint, _age bigint, _most integer
     ) returns setof text language plpgsql as $$
     declare
       _home ${schema}.collections;
       _now bigint;
       _keys text[];
     begin
       _home := ${schema}.home(_collection);
       _now := ${schema}.now_ms();
       select array_agg(x.key) into _keys from (
         select r.key from ${schema}.rows r where r.collection = _home.id and r.expires <= _now
         order by r.expires limit _most
       ) x;
       if _keys is null and _age is not null then
         select array_agg(x.key) into _keys from (
           select r.key, r.modified from ${schema}.rows r where r.collection = _home.id order by r.revision limit _most
         ) x where x.modified < _now - _age;
       end if;
       if _keys is null then
         select array_agg(x.key) into _keys from (
           select y.key, row_number() over earlier as n, sum(y.bytes) over earlier - y.bytes as freed from (
             select r.key, r.revision, octet_length(r.value) as bytes from ${schema}.rows r
             where r.collection = _home.id order by r.revision limit _most
           ) y window earlier as (order by y.revision)
         ) x where x.n <= _home.rows - _rows or _home.bytes - x.freed > _bytes;
       end if;
       if _keys is null then return; end if;
       perform ${schema}.remove(_home, _keys);
       return query select unnest(_keys);
     end $$;`
}

/**
 * Creates the tables of a store, or migrates them to this version: completely or not at all, and one process at a time.
 *
 * @param within Runs a function in one transaction.
 * @throws ResourceError `invalid` if the tables are of a newer version, or belong to another program.
 */
export async function migrate(
  { name, quoted, channel }: { readonly name: string; readonly quoted: string; readonly channel: string },
  ask: Ask,
  within: (act: (ask: Ask) => Promise<void>) => Promise<void>,
): Promise<void> {
  const steps = migrations(quoted, channel)
  if ((await versionOf(name, quoted, ask)) === steps.length) return
  await within(async (inside) => {
    await inside(`select pg_advisory_xact_lock(hashtext('hikidashi'), hashtext($1))`, [name])
    const found = await versionOf(name, quoted, inside)
    if (found > steps.length)
      throw refused(
        `The store was written by a newer hikidashi: its version is ${found}, and ${steps.length} is known here. Update this one, or name another schema.`,
        'newer',
      )
    if (found === 0) await make(name, quoted, inside)
    for (const step of steps.slice(found)) await inside(step)
    await inside(`update ${quoted}.meta set version = $1`, [steps.length])
  })
}

/** Reads the version of the schema; 0 when it does not exist. It queries the catalog, because cached names may be out of date. */
async function versionOf(name: string, quoted: string, ask: Ask): Promise<number> {
  const [there] = await ask(
    `select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace s on s.oid = c.relnamespace
     where s.nspname = $1 and c.relname = 'meta'`,
    [name],
  )
  if (there === undefined) return 0
  const [found] = await ask(`select version from ${quoted}.meta`)
  if (typeof found?.version !== 'number') throw failure('damaged', 'no version')
  return found.version
}

async function make(name: string, quoted: string, ask: Ask): Promise<void> {
  const found = await ask(
    'select count(c.oid)::int as n from pg_namespace s left join pg_class c on c.relnamespace = s.oid where s.nspname = $1 group by s.oid',
    [name],
  )
  if (found.length === 0) await ask(`create schema ${quoted}`)
  else if (found[0]?.n !== 0)
    throw refused('The schema of the store has tables of another program. Name another schema.', 'foreign')
  await ask(`create table ${quoted}.meta (version integer not null)`)
  await ask(`insert into ${quoted}.meta values (0)`)
}
