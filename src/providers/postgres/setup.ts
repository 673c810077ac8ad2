import { channel } from './channel.ts'
import { quoteName } from './sql.ts'

/** Statements that make a role that can only read. Its password is set separately, so that it is in no history. */
export function roleSql(role: string, schemas: readonly string[]): string {
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
 * Statements that let the server tell of changes of the catalog at once (as a superuser, once for each database). Without
 * them it is looked at from time to time.
 */
export const eventTriggerSql = `CREATE SCHEMA IF NOT EXISTS hikidashi;
CREATE OR REPLACE FUNCTION hikidashi.tell() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  NOTIFY ${channel};
END $$;
DROP EVENT TRIGGER IF EXISTS hikidashi_changed;
CREATE EVENT TRIGGER hikidashi_changed ON ddl_command_end EXECUTE FUNCTION hikidashi.tell();
DROP EVENT TRIGGER IF EXISTS hikidashi_dropped;
CREATE EVENT TRIGGER hikidashi_dropped ON sql_drop EXECUTE FUNCTION hikidashi.tell();
`

/** Everything that an operator may want to run, as `hikidashi init --sql postgres` prints it. */
export const setupSql = `${roleSql('hikidashi_reader', ['public'])}
-- Optional, as a superuser: tells hikidashi of changes of the catalog at once.
${eventTriggerSql}`
