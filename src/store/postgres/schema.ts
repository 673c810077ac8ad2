export function rowsSql(schema: string, channel: string): string {
  return `create table ${schema}.collections (
       id integer generated always as identity primary key,
       name text collate "C" not null unique,
       revision bigint not null default 0, rows bigint not null default 0, bytes bigint not null default 0
     );
     create table ${schema}.rows (
       collection integer not null,
       key text collate "C" not null,
       revision bigint not null,
       created bigint not null, modified bigint not null,
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
       holder text not null, expires bigint not null
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
     end $$;

     -- A notification has less than 8000 bytes: without its keys it means that anything may have changed.
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

export function removalsSql(schema: string): string {
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

     -- A part of an eviction: expired rows, else rows that are too old, else the oldest rows above the limits.
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

/** Returns the SQL that creates the tables of texts. The small `toast_tuple_target` keeps the rows of parts short. */
export function textTablesSql(schema: string): string {
  return `create table ${schema}.homes (
      id integer generated always as identity primary key,
      name text collate "C" not null unique,
      revision bigint not null default 0, texts bigint not null default 0,
      parts bigint not null default 0, length bigint not null default 0, bytes bigint not null default 0
    );
    create table ${schema}.texts (
      id bigint generated always as identity primary key,
      home integer not null,
      key text collate "C" not null,
      version text not null,
      edition bigint not null,
      mount text collate "C" not null,
      mime text collate "C",
      audience text[] not null,
      priority float8,
      modified bigint,
      parts bigint not null, length bigint not null, bytes bigint not null,
      value text not null,
      unique (home, key)
    );
    create index on ${schema}.texts (home, mime, key) where mime is not null;
    create table ${schema}.parts (
      id bigint generated always as identity primary key,
      text bigint not null references ${schema}.texts on delete cascade,
      place integer not null,
      length bigint not null,
      value text not null,
      terms tsvector not null
    ) with (toast_tuple_target = 128);
    create index on ${schema}.parts (text);
    -- Each look-up of a term also scans the pending list of the index, so this list is kept short.
    create index on ${schema}.parts using gin (terms) with (gin_pending_list_limit = 128);
    create table ${schema}.vectors (
      position bigint generated always as identity primary key,
      home integer not null,
      part bigint not null unique references ${schema}.parts on delete cascade,
      model text collate "C" not null,
      vector bytea not null
    );
    create index on ${schema}.vectors (home, model, position);`
}

export function textWritesSql(schema: string): string {
  return `create function ${schema}.text_home(_name text) returns ${schema}.homes language plpgsql as $$
    declare
      _home ${schema}.homes;
    begin
      insert into ${schema}.homes (name) values (_name) on conflict do nothing;
      select * into _home from ${schema}.homes h where h.name = _name for update;
      return _home;
    end $$;

    create function ${schema}.drop_texts(_home integer, _ids bigint[]) returns void language plpgsql as $$
    begin
      with gone as (
        delete from ${schema}.texts t where t.id = any (_ids) returning t.parts, t.length, t.bytes
      )
      update ${schema}.homes h set revision = h.revision + 1, texts = h.texts - g.n, parts = h.parts - g.parts,
        length = h.length - g.length, bytes = h.bytes - g.bytes
      from (
        select count(*) as n, coalesce(sum(parts), 0) as parts, coalesce(sum(length), 0) as length,
          coalesce(sum(bytes), 0) as bytes from gone
      ) g
      where h.id = _home;
    end $$;

    create function ${schema}.put_texts(_name text, _texts jsonb) returns void language plpgsql as $$
    declare
      _home ${schema}.homes;
      _text jsonb;
      _id bigint;
    begin
      _home := ${schema}.text_home(_name);
      perform ${schema}.drop_texts(_home.id, (
        select coalesce(array_agg(t.id), '{}') from ${schema}.texts t
        where t.home = _home.id and t.key in (select x ->> 'key' from jsonb_array_elements(_texts) x)
      ));
      for _text in select x from jsonb_array_elements(_texts) x loop
        insert into ${schema}.texts as t (home, key, version, edition, mount, mime, audience, priority, modified, parts,
          length, bytes, value)
        values (_home.id, _text ->> 'key', _text ->> 'version', (_text ->> 'edition')::bigint, _text ->> 'mount',
          _text ->> 'mime', array(select jsonb_array_elements_text(_text -> 'audience')), (_text ->> 'priority')::float8,
          (_text ->> 'modified')::bigint, jsonb_array_length(_text -> 'parts'), (_text ->> 'length')::bigint,
          (_text ->> 'bytes')::bigint, _text ->> 'value')
        returning t.id into _id;
        insert into ${schema}.parts (text, place, length, value, terms)
          select _id, p.i - 1, (p.part ->> 'length')::bigint, p.part ->> 'value', array_to_tsvector(array(
            select distinct _home.id || '~' || term from jsonb_array_elements_text(p.part -> 'terms') term
          ))
          from jsonb_array_elements(_text -> 'parts') with ordinality p(part, i) order by p.i;
        update ${schema}.homes h set revision = h.revision + 1, texts = h.texts + 1,
          parts = h.parts + jsonb_array_length(_text -> 'parts'), length = h.length + (_text ->> 'length')::bigint,
          bytes = h.bytes + (_text ->> 'bytes')::bigint
          where h.id = _home.id;
      end loop;
    end $$;

    create function ${schema}.remove_texts(
      _name text, _keys text[], _below text[], _ends text[], _most integer
    ) returns boolean language plpgsql as $$
    declare
      _home ${schema}.homes;
      _ids bigint[];
    begin
      select * into _home from ${schema}.homes h where h.name = _name for update;
      select array_agg(x.id) into _ids from (
        select t.id from ${schema}.texts t where t.home = _home.id and (
          t.key = any (_keys)
          or exists (select 1 from unnest(_below, _ends) b(low, high) where t.key >= b.low and t.key < b.high)
        ) limit _most
      ) x;
      if _ids is null then return false; end if;
      perform ${schema}.drop_texts(_home.id, _ids);
      return true;
    end $$;

    create function ${schema}.embed(_name text, _model text, _parts bigint[], _vectors bytea[]) returns void
    language plpgsql as $$
    declare
      _home ${schema}.homes;
    begin
      _home := ${schema}.text_home(_name);
      delete from ${schema}.vectors v where v.part = any (_parts);
      insert into ${schema}.vectors (home, part, model, vector)
        select _home.id, w.part, _model, w.vector from unnest(_parts, _vectors) w(part, vector)
        join ${schema}.parts p on p.id = w.part join ${schema}.texts t on t.id = p.text and t.home = _home.id
        on conflict do nothing;
    end $$;`
}
