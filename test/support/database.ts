import pg from 'pg'
import { type Postgres, startPostgres } from './postgres.ts'

/** A server with a read-only role, created as the documentation shows. */
export interface Database extends Postgres {
  /** The database `app`, as the role `reader`. */
  readonly readerUrl: string
}

export const readerPassword = 'the-password-of-reader'

/** Starts a server, and runs `sql` as the superuser; the reader may select from all tables. */
export async function startDatabase(sql: string, flags: readonly string[] = []): Promise<Database> {
  const server = await startPostgres({ flags })
  await server.run(`CREATE ROLE reader LOGIN PASSWORD '${readerPassword}'`)
  await server.run(`${sql}; ${grants}`)
  return { ...server, readerUrl: asRole(server.superuserUrl, 'reader', readerPassword) }
}

/** Lets the reader select from every existing table. */
export const grants = `
DO $$ DECLARE s text; BEGIN
  FOR s IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO reader', s);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO reader', s);
  END LOOP;
END $$`

/** Returns the URL of the same database for another role. */
export function asRole(url: string, role: string, password: string): string {
  return url.replace(/\/\/[^@]*@/, `//${role}:${password}@`)
}

/** Returns the number of our connections, as the server counts them. */
export async function connectionsOf({ run }: Postgres, application = 'hikidashi'): Promise<number> {
  const [row] = await run('SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = $1', [application])
  return Number(row?.n)
}

/** Connects as the superuser, for tests that hold a lock or transaction. The caller closes it. */
export async function superuser({ superuserUrl }: Postgres): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: superuserUrl })
  client.on('error', () => {})
  await client.connect()
  return client
}
