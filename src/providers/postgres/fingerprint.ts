import type { Session } from './query.ts'
import { servedSchema } from './sql.ts'

/**
 * SQL of a text that changes whenever the catalog changes: the number of catalog rows that describe served objects, and the sum
 * of the transaction ids that wrote them. Statistics are updated in place and do not change it.
 */
const sum = (table: string, join = '') =>
  `(SELECT pg_catalog.count(*) || ':' || COALESCE(pg_catalog.sum(x.xmin::text::bigint), 0) FROM pg_catalog.${table} x ${join})`

const inRelation = (column: string) => `WHERE x.${column} IN (SELECT r.oid FROM relations r)`

const fingerprintSql = `
WITH schemas AS MATERIALIZED (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE ${servedSchema('$1')}),
relations AS MATERIALIZED (
  SELECT c.oid FROM pg_catalog.pg_class c WHERE c.relnamespace IN (SELECT s.oid FROM schemas s)),
described AS MATERIALIZED (
  SELECT r.oid FROM relations r UNION ALL SELECT s.oid FROM schemas s
  UNION ALL SELECT t.oid FROM pg_catalog.pg_type t WHERE t.typnamespace IN (SELECT s.oid FROM schemas s) AND t.typtype = 'e'
  UNION ALL SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace IN (SELECT s.oid FROM schemas s)
  UNION ALL SELECT e.oid FROM pg_catalog.pg_extension e)
SELECT pg_catalog.concat_ws(' ',
  ${sum('pg_namespace', 'WHERE x.oid IN (SELECT s.oid FROM schemas s)')},
  ${sum('pg_class', 'WHERE x.oid IN (SELECT r.oid FROM relations r)')},
  ${sum('pg_attribute', `${inRelation('attrelid')} AND x.attnum > 0`)},
  ${sum('pg_attrdef', inRelation('adrelid'))},
  ${sum('pg_constraint', inRelation('conrelid'))},
  ${sum('pg_index', inRelation('indrelid'))},
  ${sum('pg_trigger', inRelation('tgrelid'))},
  ${sum('pg_rewrite', inRelation('ev_class'))},
  ${sum('pg_inherits', inRelation('inhrelid'))},
  ${sum('pg_type', 'WHERE x.typnamespace IN (SELECT s.oid FROM schemas s)')},
  ${sum('pg_enum', 'JOIN pg_catalog.pg_type t ON t.oid = x.enumtypid WHERE t.typnamespace IN (SELECT s.oid FROM schemas s)')},
  ${sum('pg_proc', 'WHERE x.pronamespace IN (SELECT s.oid FROM schemas s)')},
  ${sum('pg_description', 'WHERE x.objoid IN (SELECT d.oid FROM described d)')},
  ${sum('pg_extension')},
  ${sum('pg_auth_members')},
  (SELECT pg_catalog.sum(pg_catalog.hashtext(r.rolname::text)::bigint) FROM pg_catalog.pg_roles r))`

export async function readFingerprint(session: Session, schemas: readonly string[] | undefined): Promise<string> {
  const [row] = await session.query({ text: fingerprintSql, fixed: true }, [schemas ?? null])
  return row?.[0] ?? ''
}
