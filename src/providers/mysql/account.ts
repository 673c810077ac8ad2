import type { ServerSettings } from '../relational/open.ts'
import { refused } from './errors.ts'
import { type Query, quoteName } from './sql.ts'

/** Facts about a connection, read when it is opened. */
export interface AccountFacts {
  readonly isMaria: boolean
  readonly version: readonly [major: number, minor: number]
  /** Grants of the account and its roles, as the server writes them. */
  readonly grants: readonly string[]
}

/** Privileges that a read-only account may have. */
const harmless = new Set([
  ...['USAGE', 'SELECT', 'SHOW VIEW', 'SHOW DATABASES', 'SHOW_ROUTINE', 'SHOW CREATE ROUTINE', 'EXECUTE', 'PROCESS'],
  ...['REPLICATION CLIENT', 'BINLOG MONITOR', 'SLAVE MONITOR', 'REPLICA MONITOR'],
])

export async function readFacts(query: Query): Promise<AccountFacts> {
  const [row] = await query('SELECT VERSION(), CURRENT_ROLE()').catch(() => query("SELECT VERSION(), 'NONE'"))
  const [version, role] = [String(row?.[0]), String(row?.[1] ?? 'NONE')]
  const isMaria = /mariadb/i.test(version)
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version) ?? []
  const grants = await grantsOf(query, isMaria, role)
  return { isMaria, version: [Number(major), Number(minor)], grants }
}

/** Returns the grants of the account and of its roles: of the active roles in MySQL, of all roles in MariaDB. */
async function grantsOf(query: Query, isMaria: boolean, role: string): Promise<readonly string[]> {
  const linesOf = async (sql: string) => (await query(sql)).map(([line]) => String(line))
  const own = await linesOf('SHOW GRANTS')
  if (!isMaria) return role === 'NONE' ? own : linesOf(`SHOW GRANTS FOR CURRENT_USER() USING ${role}`)
  const found = [...own]
  const seen = new Set<string>()
  for (const line of found) {
    const name = /^GRANT `((?:[^`]|``)+)` TO /.exec(line)?.[1]?.replaceAll('``', '`')
    if (name === undefined || seen.has(name)) continue
    seen.add(name)
    // MariaDB shows the grants of a role only while the role is active.
    await query(`SET ROLE ${quoteName(name)}`)
    found.push(...(await linesOf('SHOW GRANTS')))
  }
  if (seen.size > 0) await query(`SET ROLE ${role === 'NONE' ? role : quoteName(role)}`)
  return found
}

/** @throws ResourceError `unavailable` (reason `refused`) for an account that could do more than read, unless that is allowed. */
export function requireHarmless(facts: AccountFacts, settings: ServerSettings, database: string | undefined): void {
  const { isMaria, version, grants } = facts
  const [major, minor] = version
  const isOld = isMaria ? major < 10 || (major === 10 && minor < 5) : major < 8
  if (isOld) throw refused('The server is older than MySQL 8 or MariaDB 10.5, and is not served.')
  const schemas = settings.schemas ?? (database === undefined ? undefined : [database])
  const powers = [...new Set(grants.flatMap((line) => powersIn(line, schemas)))]
  if (powers.length === 0 || settings.allowPrivileged) return
  throw refused(
    `The account of the URL can do more than read: it has ${powers.slice(0, 5).join(', ')}. ` +
      'Make one that only reads ("hikidashi init --sql mysql" prints how), or accept this one: "allowPrivileged": true.',
  )
}

/** Returns the privileges beyond reading that a grant line gives, globally or on a served schema. */
export function powersIn(line: string, schemas: readonly string[] | undefined): readonly string[] {
  if (/^GRANT PROXY /.test(line)) return ['PROXY']
  const match =
    /^GRANT (.+?) ON (?:(?:TABLE|FUNCTION|PROCEDURE|PACKAGE|PACKAGE BODY) )?(\*|`(?:[^`]|``)*`)\.(?:\*|`(?:[^`]|``)*`) TO /.exec(
      line,
    )
  const [, list, on] = match ?? []
  if (list === undefined || on === undefined) return []
  if (on !== '*' && !reaches(on.slice(1, -1).replaceAll('``', '`'), schemas)) return []
  const names = list
    .replace(/\((?:[^()`]|`(?:[^`]|``)*`)*\)/g, '')
    .split(',')
    .map((name) => name.trim())
  const isGranting = /WITH (?:.* )?GRANT OPTION/.test(line.slice(line.lastIndexOf(' TO ')))
  return [...names, ...(isGranting ? ['GRANT OPTION'] : [])].filter((name) => !harmless.has(name))
}

/** Whether the pattern of a grant matches a served schema. */
function reaches(pattern: string, schemas: readonly string[] | undefined): boolean {
  if (schemas === undefined) return true
  // Some systems ignore the case of names, so it is ignored on all of them.
  const parts = pattern.toLowerCase().match(/\\?[\s\S]/gu) ?? []
  return schemas.some((schema) => isLike(Array.from(schema.toLowerCase()), parts))
}

/**
 * Whether a text matches a LIKE pattern of SQL. The parts of the pattern are `%`, `_` and characters, escaped ones with their
 * backslash. The match backtracks only to the last `%`, so its time is at most proportional to the product of both lengths.
 */
function isLike(text: readonly string[], parts: readonly string[]): boolean {
  let [at, part] = [0, 0]
  let retry: { at: number; readonly part: number } | undefined
  while (at < text.length) {
    const wanted = parts[part]
    if (wanted === '%') {
      part++
      retry = { at, part }
    } else if (wanted === '_' || (wanted !== undefined && wanted.replace(/^\\(?=[\s\S])/u, '') === text[at])) {
      at++
      part++
    } else if (retry !== undefined) {
      retry.at++
      at = retry.at
      part = retry.part
    } else return false
  }
  return parts.slice(part).every((left) => left === '%')
}

/** SQL statements that create a read-only account. `hikidashi init --sql mysql` prints them. */
export const setupSql = `-- An account that reads and does nothing else. Set its password yourself, so that no history has it:
--   ALTER USER 'hikidashi_reader'@'%' IDENTIFIED BY '…';
CREATE USER 'hikidashi_reader'@'%' ACCOUNT LOCK;
-- For each database that is served:
GRANT SELECT, SHOW VIEW ON \`app\`.* TO 'hikidashi_reader'@'%';
-- To list functions and procedures too (hikidashi never calls them):
--   GRANT EXECUTE ON \`app\`.* TO 'hikidashi_reader'@'%';
-- and to show their definitions, on MySQL:
--   GRANT SHOW_ROUTINE ON *.* TO 'hikidashi_reader'@'%';
-- on MariaDB from 11.3, and on earlier versions:
--   GRANT SHOW CREATE ROUTINE ON \`app\`.* TO 'hikidashi_reader'@'%';
--   GRANT SELECT ON mysql.proc TO 'hikidashi_reader'@'%';
-- Once it has a password:
--   ALTER USER 'hikidashi_reader'@'%' ACCOUNT UNLOCK;
`
