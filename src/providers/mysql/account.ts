import { isResourceError } from '../../core/errors.ts'
import type { ServerSettings } from '../relational/open.ts'
import { refusedOpeningError } from './errors.ts'
import { type Query, quoteName } from './sql.ts'

export interface AccountProperties {
  readonly isMaria: boolean
  readonly version: readonly [major: number, minor: number]
  /** Grants of the account, and of every role that it can activate, as the server writes them. */
  readonly grants: readonly string[]
  /** Roles, quoted, whose grants the server does not show to the account. */
  readonly unknownRoles: readonly string[]
}

/** Privileges that a read-only account may have. */
const harmless = new Set([
  ...['USAGE', 'SELECT', 'SHOW VIEW', 'SHOW DATABASES', 'SHOW_ROUTINE', 'SHOW CREATE ROUTINE', 'EXECUTE', 'PROCESS'],
  ...['REPLICATION CLIENT', 'BINLOG MONITOR', 'SLAVE MONITOR', 'REPLICA MONITOR'],
])

export async function readAccountProperties(query: Query): Promise<AccountProperties> {
  // The settings of the server may quote the names in grants differently, or not at all.
  await query("SET SESSION sql_mode = '', sql_quote_show_create = 1")
  const [row] = await query('SELECT VERSION(), CURRENT_ROLE()').catch(() => query("SELECT VERSION(), 'NONE'"))
  const [version, role] = [String(row?.[0]), String(row?.[1] ?? 'NONE')]
  const isMaria = /mariadb/i.test(version)
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version) ?? []
  const grants = isMaria ? await mariaGrants(query, role) : await mysqlGrants(query, role)
  return { isMaria, version: [Number(major), Number(minor)], ...grants }
}

type Grants = Pick<AccountProperties, 'grants' | 'unknownRoles'>

/** Returns the grants of the account and its roles. `SHOW GRANTS` of MySQL gives the privileges of a role only if `USING` names it. */
async function mysqlGrants(query: Query, active: string): Promise<Grants> {
  const own = await queryGrants(query, 'SHOW GRANTS')
  const roles = [...new Set([...own.flatMap(rolesIn), ...quotedRoles(active)])]
  if (roles.length === 0) return { grants: own, unknownRoles: [] }
  const all = await ifAllowed(queryGrants(query, `SHOW GRANTS FOR CURRENT_USER() USING ${roles.join(', ')}`))
  return all === undefined ? { grants: own, unknownRoles: roles } : { grants: [...own, ...all], unknownRoles: [] }
}

/** Returns the grants of the account and its roles. MariaDB shows the grants of a role, and of the roles within it, only while it is active. */
async function mariaGrants(query: Query, active: string): Promise<Grants> {
  const own = await queryGrants(query, 'SHOW GRANTS')
  const roles = [...new Set(own.flatMap(rolesIn))]
  const grants = [...own]
  const unknownRoles: string[] = []
  for (const role of roles) {
    if ((await ifAllowed(query(`SET ROLE ${role}`))) === undefined) unknownRoles.push(role)
    else grants.push(...(await queryGrants(query, 'SHOW GRANTS')))
  }
  if (roles.length > 0) await query(`SET ROLE ${active === 'NONE' ? active : quoteName(active)}`)
  return { grants, unknownRoles }
}

async function queryGrants(query: Query, sql: string): Promise<readonly string[]> {
  return (await query(sql)).map(([line]) => String(line))
}

/** Returns the answer; undefined if the server refuses the statement. Rethrows the error of a lost or overloaded connection. */
async function ifAllowed<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (!isResourceError(error) || error.kind === 'unavailable') throw error
    return undefined
  }
}

const quotedRole = /`(?:[^`]|``)*`(?:@`(?:[^`]|``)*`)?/
const roleGrant = new RegExp(`^GRANT (${quotedRole.source}(?:, ?${quotedRole.source})*) TO \`(?:[^\`]|\`\`)*\`@\``)

/** Returns the roles, quoted, that a grant line gives to an account; none for a line that gives roles to a role. */
export function rolesIn(line: string): readonly string[] {
  return quotedRoles(roleGrant.exec(line)?.[1] ?? '')
}

function quotedRoles(list: string): readonly string[] {
  return list.match(new RegExp(quotedRole, 'g')) ?? []
}

/**
 * @throws ResourceError `unavailable` (fault `refused`) for a server that is too old, and, unless `allowPrivileged` is set, for an account
 * that can do more than read or has a role whose grants are unknown.
 */
export function requireReadOnlyAccount(
  facts: AccountProperties,
  settings: ServerSettings,
  database: string | undefined,
): void {
  const { isMaria, version, grants, unknownRoles } = facts
  const [major, minor] = version
  const isOld = isMaria ? major < 10 || (major === 10 && minor < 5) : major < 8
  if (isOld)
    throw refusedOpeningError(
      'The server is older than MySQL 8 or MariaDB 10.5, which hikidashi does not support. Update the server.',
    )
  const schemas = settings.schemas ?? (database === undefined ? undefined : [database])
  const powers = [...new Set(grants.flatMap((line) => excessPrivilegesIn(line, schemas)))]
  if (settings.allowPrivileged) return
  if (powers.length > 0)
    throw refusedOpeningError(
      `The account of the URL can do more than read: it has ${powers.slice(0, 5).join(', ')}. ${remedy}`,
    )
  if (unknownRoles.length > 0)
    throw refusedOpeningError(
      `The account of the URL can take the role ${unknownRoles.slice(0, 5).join(', ')}, and the server does not show what the role may do. ` +
        remedy,
    )
}

const remedy =
  'Create an account that can only read ("hikidashi init --sql mysql" prints how), or accept this one: "allowPrivileged": true.'

/**
 * Returns the privileges beyond reading that a grant line gives, globally or on a served schema. A grant of an unknown form counts as
 * such a privilege; a grant of roles does not: see {@link rolesIn}.
 */
export function excessPrivilegesIn(line: string, schemas: readonly string[] | undefined): readonly string[] {
  if (/^GRANT PROXY /.test(line)) return ['PROXY']
  const match =
    /^GRANT (.+?) ON (?:(?:TABLE|FUNCTION|PROCEDURE|LIBRARY|PACKAGE|PACKAGE BODY) )?(\*|`(?:[^`]|``)*`)\.(?:\*|`(?:[^`]|``)*`) TO /.exec(
      line,
    )
  const [, list, on] = match ?? []
  if (list === undefined || on === undefined) return /^GRANT (?!`)/.test(line) ? ['an unknown right'] : []
  if (on !== '*' && !reaches(on.slice(1, -1).replaceAll('``', '`'), schemas)) return []
  const names = list
    .replace(/\((?:[^()`]|`(?:[^`]|``)*`)*\)/g, '')
    .split(',')
    .map((name) => name.trim())
  const isGranting = /WITH (?:.* )?GRANT OPTION/.test(line.slice(line.lastIndexOf(' TO ')))
  return [...names, ...(isGranting ? ['GRANT OPTION'] : [])].filter((name) => !harmless.has(name))
}

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
    const pattern = parts[part]
    if (pattern === '%') {
      part++
      retry = { at, part }
    } else if (pattern === '_' || (pattern !== undefined && pattern.replace(/^\\(?=[\s\S])/u, '') === text[at])) {
      at++
      part++
    } else if (retry !== undefined) {
      retry.at++
      at = retry.at
      part = retry.part
    } else return false
  }
  return parts.slice(part).every((character) => character === '%')
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
