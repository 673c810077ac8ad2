import { unavailable } from '../../core/errors.ts'
import type { ServerSettings } from '../relational/open.ts'
import { notifyChannel, type Query, quoteName, servedSchemaCondition } from './sql.ts'

interface SessionFacts {
  readonly pid: number
  readonly version: number
  readonly encoding: string
  /** Powers of the role beyond reading, in words. */
  readonly powers: readonly string[]
}

/** Predefined roles that reach beyond the database, or write to it. */
const dangerous = [
  'pg_checkpoint',
  'pg_create_subscription',
  'pg_database_owner',
  'pg_execute_server_program',
  'pg_maintain',
  'pg_read_server_files',
  'pg_signal_backend',
  'pg_write_all_data',
  'pg_write_server_files',
]

/** Functions that read or write outside of tables; only a superuser may call them, unless they were granted. */
const functions = [
  'pg_catalog.pg_read_file(text)',
  'pg_catalog.pg_read_binary_file(text)',
  'pg_catalog.pg_ls_dir(text)',
  'pg_catalog.lo_export(oid,text)',
  'pg_catalog.lo_import(text)',
]

const factsSql = `
SELECT pg_catalog.pg_backend_pid()::text,
       pg_catalog.current_setting('server_version_num'),
       pg_catalog.current_setting('server_encoding'),
       pg_catalog.array_to_json(ARRAY(
         SELECT p.power FROM (
           SELECT 1 AS n, 'it is a superuser, or can become one' AS power
            WHERE EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolsuper AND pg_catalog.pg_has_role(current_user, r.oid, 'MEMBER'))
           UNION ALL SELECT 2, 'it is not bound by row-level security (BYPASSRLS)'
            WHERE EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolbypassrls AND pg_catalog.pg_has_role(current_user, r.oid, 'MEMBER'))
           UNION ALL SELECT 3, 'it may replicate (REPLICATION)'
            WHERE EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolreplication AND pg_catalog.pg_has_role(current_user, r.oid, 'MEMBER'))
           UNION ALL SELECT 4, 'it may create roles (CREATEROLE)'
            WHERE EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolcreaterole AND pg_catalog.pg_has_role(current_user, r.oid, 'MEMBER'))
           UNION ALL SELECT 5, 'it is a member of ' || r.rolname
             FROM pg_catalog.pg_roles r WHERE r.rolname = ANY ($1::text[]) AND pg_catalog.pg_has_role(current_user, r.oid, 'MEMBER')
           UNION ALL SELECT 6, 'it may call ' || f
             FROM pg_catalog.unnest($2::text[]) f WHERE pg_catalog.has_function_privilege(f, 'EXECUTE')
           UNION ALL SELECT 7, 'it owns what is served, or may write to it'
            WHERE EXISTS (
              SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               WHERE c.relkind IN ('r', 'p', 'v', 'm') AND ${servedSchemaCondition('$3')}
                 AND (pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
                   OR pg_catalog.pg_has_role(current_user, c.relowner, 'MEMBER')))
         ) p ORDER BY p.n, p.power))::text`

export async function readSessionProperties(query: Query, { schemas }: ServerSettings): Promise<SessionFacts> {
  const [row] = await query({ text: factsSql }, [dangerous, functions, schemas ?? null])
  const [pid, version, encoding, powers] = row ?? []
  return {
    pid: Number(pid),
    version: Number(version),
    encoding: encoding ?? '',
    powers: JSON.parse(powers ?? '[]') as readonly string[],
  }
}

const minVersion = 120_000

/**
 * @throws ResourceError `unavailable` (fault `refused`) for a role that could do more than read, unless that is allowed; and
 *   for an unsupported version or encoding.
 */
export function requireReadOnlyRole(
  { version, encoding, powers }: SessionFacts,
  { allowPrivileged }: ServerSettings,
): void {
  const refuse = (message: string) => unavailable(message, { fault: 'refused' })
  if (version < minVersion)
    throw refuse('The server is older than PostgreSQL 12, which hikidashi does not support. Update the server.')
  if (encoding === 'SQL_ASCII')
    throw refuse('The database has the encoding SQL_ASCII, in which names are ambiguous. Convert it to UTF8.')
  if (powers.length === 0 || allowPrivileged) return
  throw refuse(
    `The role of the URL can do more than read: ${powers.slice(0, 5).join('; ')}. ` +
      'Create a role that can only read ("hikidashi init --sql postgres" prints how), or accept this one: "allowPrivileged": true.',
  )
}

/** Returns SQL statements that create a read-only role, without its password. */
function roleSql(role: string, schemas: readonly string[]): string {
  const name = quoteName(role)
  const each = schemas.map(
    (schema) => `GRANT USAGE ON SCHEMA ${quoteName(schema)} TO ${name};
GRANT SELECT ON ALL TABLES IN SCHEMA ${quoteName(schema)} TO ${name};
-- Tables that are made later, by the role that runs this:
ALTER DEFAULT PRIVILEGES IN SCHEMA ${quoteName(schema)} GRANT SELECT ON TABLES TO ${name};`,
  )
  return `-- A role that reads and does nothing else. Set its password with: \\password ${role}
CREATE ROLE ${name} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT;
${each.join('\n')}
`
}

/**
 * SQL statements for event triggers, with which the server reports changes of the catalog at once. A superuser runs them once
 * for each database. Without them the provider only polls the catalog.
 */
export const eventTriggerSql = `CREATE SCHEMA IF NOT EXISTS hikidashi;
CREATE OR REPLACE FUNCTION hikidashi.tell() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  NOTIFY ${notifyChannel};
END $$;
DROP EVENT TRIGGER IF EXISTS hikidashi_changed;
CREATE EVENT TRIGGER hikidashi_changed ON ddl_command_end EXECUTE FUNCTION hikidashi.tell();
DROP EVENT TRIGGER IF EXISTS hikidashi_dropped;
CREATE EVENT TRIGGER hikidashi_dropped ON sql_drop EXECUTE FUNCTION hikidashi.tell();
`

/** Statements that an operator may run. `hikidashi init --sql postgres` prints them. */
export const setupSql = `${roleSql('hikidashi_reader', ['public'])}
-- Optional, as a superuser: tells hikidashi of changes of the catalog at once.
${eventTriggerSql}`
