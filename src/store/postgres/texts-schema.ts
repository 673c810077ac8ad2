/** The second version: texts. The terms of a part are in a separate table, because a search needs only the id of the row. */
export function textsMigration(schema: string): string {
  return `${tablesSql(schema)}\n\n${functionsSql(schema)}`
}

function tablesSql(schema: string): string {
  return `create table ${schema}.homes (
      id integer generated always as identity primary key,
      name text collate "C" not null unique,
      revision bigint not null default 0,
      texts bigint not null default 0,
      parts bigint not null default 0,
      length bigint not null default 0,
      bytes bigint not null default 0
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
      parts bigint not null,
      length bigint not null,
      bytes bigint not null,
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
    -- What is not yet in the index proper is gone through for each term that is looked up: it is not to be much.
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

/** Writing, removing and embedding texts. */
function functionsSql(schema: string): string {
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
