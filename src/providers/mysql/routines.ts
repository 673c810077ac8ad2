import type { ObjectName, Overload, Routine } from '../relational/model.ts'
import { objectNameKey } from '../relational/names.ts'
import { groupRows } from './raw.ts'
import type { MysqlSession } from './session.ts'
import { type Cells, endStatement, placeholdersFor, quoteName, quoteObjectName, quoteText } from './sql.ts'

/** The listed kinds of routines. Packages are left out, because their routines have two names. */
export const servedRoutineCondition = "ROUTINE_TYPE IN ('FUNCTION', 'PROCEDURE')"

/** A function or procedure as the information schema describes it, without its definer. */
interface RawRoutine {
  readonly name: ObjectName
  readonly isFunction: boolean
  readonly returns: string
  readonly language: string
  /** Source of the routine. Undefined: the account may not see it. */
  readonly body: string | undefined
  readonly deterministic: boolean
  readonly access: string
  readonly security: string
  readonly comment: string
  readonly modes: readonly string[]
  readonly collation: string
  readonly parameters: readonly { readonly mode: string; readonly name: string; readonly type: string }[]
}

/** SQL modes that change the meaning of the source of a routine. */
const telling = new Set([
  'ANSI_QUOTES',
  'HIGH_NOT_PRECEDENCE',
  'NO_BACKSLASH_ESCAPES',
  'ORACLE',
  'PIPES_AS_CONCAT',
  'REAL_AS_FLOAT',
])

export async function describeRoutines(
  session: MysqlSession,
  names: readonly ObjectName[],
  schemas: readonly string[] | undefined,
): Promise<readonly Routine[]> {
  const objectNames = names.filter(({ schema }) => schemas === undefined || schemas.includes(schema))
  if (objectNames.length === 0) return []
  const { routines, parameters } = await readRaw(session.query, objectNames)
  return objectNames.flatMap((name) => {
    const id = objectNameKey(name)
    const rows = routines.get(id) ?? []
    const rowsOfType = (type: Cells[number] | undefined) => (parameters.get(id) ?? []).filter((row) => row[2] === type)
    const overloads = rows.map((row) => overloadOf(rawOf(name, row, rowsOfType(row[2]))))
    return overloads.length === 0 ? [] : [{ ...name, overloads }]
  })
}

async function readRaw(query: MysqlSession['query'], names: readonly ObjectName[]) {
  const keys = new Set(names.map(objectNameKey))
  const schemas = placeholdersFor([...new Set(names.map(({ schema }) => schema))])
  const own = placeholdersFor(names.map(({ name }) => name))
  const rowsOf = async (columns: string, from: string, of: string, order: string) => {
    const rows = await query(
      `SELECT ${of}_SCHEMA, ${of}_NAME, ROUTINE_TYPE, ${columns} FROM information_schema.${from}
        WHERE ${of}_SCHEMA IN (${schemas.sql}) AND ${of}_NAME IN (${own.sql}) AND ${servedRoutineCondition} ORDER BY ${order}`,
      [...schemas.values, ...own.values],
    )
    return groupRows(rows, keys)
  }
  const routines = await rowsOf(
    `DTD_IDENTIFIER, EXTERNAL_LANGUAGE, ROUTINE_DEFINITION, IS_DETERMINISTIC, SQL_DATA_ACCESS, SECURITY_TYPE, ROUTINE_COMMENT,
      SQL_MODE, DATABASE_COLLATION`,
    ...(['ROUTINES', 'ROUTINE', 'ROUTINE_TYPE'] as const),
  )
  const parameters = await rowsOf(
    'ORDINAL_POSITION, PARAMETER_MODE, PARAMETER_NAME, DTD_IDENTIFIER, CHARACTER_SET_NAME, COLLATION_NAME',
    ...(['PARAMETERS', 'SPECIFIC', 'ORDINAL_POSITION'] as const),
  )
  return { routines, parameters }
}

function rawOf(name: ObjectName, row: Cells, parameters: readonly Cells[]): RawRoutine {
  const [, , type, returns, language, body, deterministic, access, security, comment, modes, collation] = row
  const usual = String(collation)
  // Position 0 is the return type of a function.
  const answer = parameters.find(([, , , position]) => Number(position) === 0)
  return {
    name,
    isFunction: type === 'FUNCTION',
    returns: answer === undefined ? String(returns ?? '') : typeWithCharset(answer, usual),
    language: String(language ?? 'SQL'),
    body: body === null || body === undefined ? undefined : String(body),
    deterministic: deterministic === 'YES',
    ...{ access: String(access), security: String(security), comment: String(comment ?? '') },
    modes: String(modes ?? '').split(','),
    collation: usual,
    parameters: parameters
      .filter((parameter) => parameter !== answer)
      .map((parameter) => ({
        ...{ mode: String(parameter[4] ?? 'IN'), name: String(parameter[5] ?? '') },
        type: typeWithCharset(parameter, usual),
      })),
  }
}

function typeWithCharset([, , , , , , type, set, collation]: Cells, usual: string): string {
  if (set === null || set === undefined || collation === usual) return String(type ?? '')
  return `${String(type)} CHARACTER SET ${String(set)} COLLATE ${String(collation)}`
}

function overloadOf(raw: RawRoutine): Overload {
  const { isFunction, language, deterministic, security, comment, body } = raw
  const kind = isFunction ? (isAggregate(body) ? 'aggregate' : 'function') : 'procedure'
  return {
    ...{
      kind,
      arguments: formatParameters(raw, (name) => (/^[a-z_][a-z0-9_]*$/i.test(name) ? name : quoteName(name))),
    },
    ...(isFunction ? { returns: raw.returns } : {}),
    language: language.toLowerCase(),
    ...(comment === '' ? {} : { comment }),
    volatility: deterministic ? 'deterministic' : 'not deterministic',
    securityDefiner: security === 'DEFINER',
    ...(body === undefined ? {} : { definition: routineDefinition(raw, kind, body) }),
  }
}

/** Whether a function of MariaDB is an aggregate: only the statement `FETCH GROUP NEXT ROW` in its body shows that. */
function isAggregate(body = ''): boolean {
  const plain = body.replace(/'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|\/\*[\s\S]*?\*\/|(?:-- |#).*/g, ' ')
  return /\bFETCH\s+GROUP\s+NEXT\s+ROW\b/i.test(plain)
}

function formatParameters({ parameters, isFunction, modes }: RawRoutine, quote: (name: string) => string): string {
  const isOracle = modes.includes('ORACLE')
  return parameters
    .map(({ mode, name, type }) => {
      const modes = isFunction && mode === 'IN' ? [] : [mode]
      return (isOracle ? [quote(name), ...modes, type] : [...modes, quote(name), type]).join(' ')
    })
    .join(', ')
}

function routineDefinition(raw: RawRoutine, kind: Overload['kind'], body: string): string {
  const { name, isFunction, returns, language, deterministic, access, security, comment, modes } = raw
  const set = modes.filter((mode) => telling.has(mode))
  const isOracle = set.includes('ORACLE')
  const isSql = language === 'SQL'
  const what = kind === 'aggregate' ? 'AGGREGATE FUNCTION' : kind.toUpperCase()
  const lines = [
    `CREATE ${what} ${quoteObjectName(name)}(${formatParameters(raw, quoteName)})${isFunction ? ` ${isOracle ? 'RETURN' : 'RETURNS'} ${returns}` : ''}`,
    ...(isSql ? [] : [`LANGUAGE ${language}`]),
    ...(deterministic ? ['DETERMINISTIC'] : []),
    ...(access === 'CONTAINS SQL' ? [] : [access]),
    ...(security === 'DEFINER' ? [] : [`SQL SECURITY ${security}`]),
    ...(comment === '' ? [] : [`COMMENT ${quoteText(comment)}`]),
    ...(isSql ? [body] : [`AS ${fenceOf(body)}${body}${fenceOf(body)}`]),
  ]
  return `${set.length === 0 ? '' : `SET sql_mode = '${set.join(',')}';\n`}${endStatement(lines.join('\n'))}`
}

/** Returns a dollar quote that does not occur in a routine body in another language. */
function fenceOf(body: string): string {
  const tags = [...body.matchAll(/\$(_*)\$/g)].map(([, inner = '']) => inner.length)
  return `$${'_'.repeat(tags.length === 0 ? 0 : Math.max(...tags) + 1)}$`
}
