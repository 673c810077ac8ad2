import { createHash } from 'node:crypto'
import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { metaKeys } from '../../core/meta.ts'
import { allowsInOpenMount } from '../../core/mount-reader.ts'
import type { Content, Context, Params } from '../../core/provider.ts'
import { rowsMimeType } from '../../core/search-answer.ts'
import type {
  CatalogItem,
  DatabaseSource,
  EnumType,
  Extension,
  ObjectName,
  PageQuery,
  Relation,
  Routine,
  SourceContext,
} from './model.ts'
import { nameToSegment, objectDirectory, objectNameKey } from './names.ts'

/** The MIME types of the resources. docs/providers/postgres.md describes the formats. */
export const databaseMimeTypes = {
  schema: 'application/json;format=hikidashi.DatabaseSchema',
  enum: 'application/json;format=hikidashi.DatabaseEnum',
  function: 'application/json;format=hikidashi.DatabaseFunction',
  extensions: 'application/json;format=hikidashi.DatabaseExtensions',
  overview: 'application/json;format=hikidashi.DatabaseOverview',
  rows: rowsMimeType,
  sql: 'application/sql',
  mermaid: 'text/vnd.mermaid',
} as const

export function textContent(text: string, mimeType: string, meta?: Readonly<Record<string, unknown>>): Content {
  return {
    text,
    mimeType,
    size: Buffer.byteLength(text),
    version: textVersion(text),
    ...defined({ meta }),
  }
}

export function textVersion(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

export function jsonContent(value: unknown, mimeType: string, meta?: Readonly<Record<string, unknown>>): Content {
  return textContent(`${JSON.stringify(value, null, 2)}\n`, mimeType, meta)
}

/** Returns the JSON document of a table or view. Unknown facts are `null`, so that all documents of a database have the same keys. */
export function relationDocument(relation: Relation) {
  const { schema, name, kind, owner, comment, definition, columns, primaryKey, rowEstimate } = relation
  return {
    ...schemaMember(schema),
    table: name,
    kind,
    owner: owner ?? null,
    comment: comment ?? null,
    rowEstimate: rowEstimate ?? null,
    columns: columns.map(({ name: column, type, nullable, comment: commentText, ...rest }) => ({
      name: column,
      type,
      nullable,
      comment: commentText ?? null,
      ...rest,
    })),
    primaryKey: primaryKey ?? null,
    uniqueKeys: relation.uniqueKeys,
    foreignKeys: relation.foreignKeys.map((key) => ({ ...key, references: foreignKeyEndpoint(key.references) })),
    referencedBy: relation.referencedBy.map((key) => ({ ...key, from: foreignKeyEndpoint(key.from) })),
    checks: relation.checks,
    indexes: relation.indexes,
    triggers: relation.triggers,
    definition,
  }
}

function foreignKeyEndpoint({ schema, name, columns }: ObjectName & { readonly columns: readonly string[] }) {
  return { ...schemaMember(schema), table: name, columns }
}

export function enumDocument({ schema, name, owner, comment, values, definition }: EnumType) {
  return { ...schemaMember(schema), enum: name, owner: owner ?? null, comment: comment ?? null, values, definition }
}

export function routineDocument({ schema, name, overloads }: Routine) {
  return { ...schemaMember(schema), function: name, overloads }
}

export function extensionsDocument(extensions: readonly Extension[]) {
  return { extensions }
}

/** Returns the member `schema` of a document; no member for a database without schemas. */
export function schemaMember(schema: string): { readonly schema?: string } {
  return schema === '' ? {} : { schema }
}

/** Maximum number of tables and views in the overview, and in the diagram. */
const [maxRelations, maxDrawn] = [1000, 100]
/** Maximum number of columns drawn per table, keys first. */
const maxColumns = 30
const chunk = 200

/** Returns a relation without the references from tables that the caller may not see. Its own foreign keys stay: they are part of its definition. */
export function visibleRelation(relation: Relation, only: string | undefined, { allows }: Pick<Context, 'allows'>) {
  const sees = seenBy(only, allows)
  return { ...relation, referencedBy: relation.referencedBy.filter(({ from }) => sees(from)) }
}

function seenBy(only: string | undefined, allows: Context['allows']): (name: ObjectName) => boolean {
  if (allows === undefined || allows === allowsInOpenMount) return () => true
  return (name) => allows(`${objectDirectory(name, only)}schema`)
}

/**
 * Reads the overview of a schema, or of the database: the tables and views that the caller may see, up to a maximum, and the references
 * between them. Undefined: the schema has no objects.
 */
export async function readOverview(
  source: DatabaseSource,
  schema: string | undefined,
  params: Params,
  context: SourceContext & Pick<Context, 'allows'>,
): Promise<Content | undefined> {
  const format = params.get('format')
  if (format !== undefined && format !== 'mermaid')
    throw invalid(
      'The parameter "format" of an overview must be mermaid. Write ?format=mermaid, or leave it out.',
      'parameter',
      { parameter: 'format' },
    )
  const prefix = schema === undefined || source.schema !== undefined ? '' : `${nameToSegment(schema)}/`
  const sees = seenBy(source.schema, context.allows)
  const { names, more, found } = await collectRelationNames(source, prefix, sees, context)
  if (!found && prefix !== '') return undefined
  const relations: Relation[] = []
  for (let at = 0; at < names.length; at += chunk)
    relations.push(...(await source.relations(names.slice(at, at + chunk), context)))
  const relationsInOrder = inOrderOfNames(names, relations).map((relation) => ({
    ...relation,
    foreignKeys: relation.foreignKeys.filter(({ references }) => sees(references)),
  }))
  const meta = more ? { [metaKeys.truncated]: true } : undefined
  const mermaid = diagramOf(relationsInOrder, source.schema)
  if (format === 'mermaid') return textContent(mermaid, databaseMimeTypes.mermaid, meta)
  return jsonContent({ ...overviewDocument(relationsInOrder, schema, more), mermaid }, databaseMimeTypes.overview, meta)
}

async function collectRelationNames(
  source: DatabaseSource,
  prefix: string,
  sees: (name: ObjectName) => boolean,
  context: SourceContext,
) {
  const names: ObjectName[] = []
  let isFound = false
  for await (const page of catalogPagesFrom(source, { from: prefix, prefix, limit: 1000 }, context))
    for (const item of page) {
      isFound = true
      if (!('name' in item) || item.relation === undefined || !sees(item)) continue
      if (names.length === maxRelations) return { names, more: true, found: isFound }
      names.push({ schema: item.schema, name: item.name })
    }
  return { names, more: false, found: isFound }
}

/** Yields the pages of objects from a key on, in the order of their keys. */
export async function* catalogPagesFrom(
  source: DatabaseSource,
  query: PageQuery,
  context: SourceContext,
): AsyncGenerator<readonly CatalogItem[]> {
  for (let { from } = query; ; ) {
    const page = await source.page({ ...query, from }, context)
    yield page
    const last = page.at(-1)
    if (last === undefined || page.length < query.limit) return
    // Start the next page at the first possible key after the last one.
    from = `${last.key}\u0001`
  }
}

function inOrderOfNames(names: readonly ObjectName[], relations: readonly Relation[]): readonly Relation[] {
  const byName = new Map(relations.map((relation) => [objectNameKey(relation), relation]))
  return names.flatMap((name) => byName.get(objectNameKey(name)) ?? [])
}

function overviewDocument(relations: readonly Relation[], schema: string | undefined, more: boolean) {
  return {
    ...(schema === undefined ? {} : schemaMember(schema)),
    ...(more ? { truncated: true } : {}),
    tables: relations.map(({ schema: own, name, kind, comment, rowEstimate, columns, primaryKey }) => ({
      ...schemaMember(own),
      table: name,
      kind,
      comment: comment ?? null,
      columns: columns.length,
      primaryKey: primaryKey?.columns ?? null,
      rowEstimate: rowEstimate ?? null,
    })),
    relations: relations.flatMap(({ schema: own, name, foreignKeys }) =>
      foreignKeys.map((key) => ({
        name: key.name,
        from: foreignKeyEndpoint({ schema: own, name, columns: key.columns }),
        to: foreignKeyEndpoint(key.references),
      })),
    ),
  }
}

/**
 * Returns an entity relationship diagram (Mermaid `erDiagram`) of the first tables and columns. Names of tables and keys are quoted, and
 * characters that Mermaid does not accept are replaced.
 */
export function diagramOf(relations: readonly Relation[], only: string | undefined): string {
  const drawnRelations = relations.slice(0, maxDrawn)
  const ids = new Map(drawnRelations.map((relation, index) => [objectNameKey(relation), `t${index}`]))
  const label = ({ schema, name }: ObjectName) => quoted(only === undefined ? `${schema}.${name}` : name)
  const lines = ['erDiagram']
  for (const relation of drawnRelations) {
    lines.push(`  ${ids.get(objectNameKey(relation))}[${label(relation)}] {`)
    const primary = new Set(relation.primaryKey?.columns)
    const foreign = new Set(relation.foreignKeys.flatMap(({ columns }) => columns))
    const isKey = (name: string) => primary.has(name) || foreign.has(name)
    const columns = [...relation.columns].sort((a, b) => Number(isKey(b.name)) - Number(isKey(a.name)))
    for (const { name, type } of columns.slice(0, maxColumns)) {
      const keys = [...(primary.has(name) ? ['PK'] : []), ...(foreign.has(name) ? ['FK'] : [])].join(', ')
      lines.push(`    ${oneWord(type)} ${oneWord(name)}${keys === '' ? '' : ` ${keys}`}`)
    }
    lines.push('  }')
  }
  for (const relation of drawnRelations)
    for (const { name, references, columns } of relation.foreignKeys) {
      const [from, to] = [ids.get(objectNameKey(relation)), ids.get(objectNameKey(references))]
      if (from === undefined || to === undefined) continue
      const optional = columns.some((column) => relation.columns.find((one) => one.name === column)?.nullable)
      lines.push(`  ${from} }o--${optional ? 'o|' : '||'} ${to} : ${quoted(name)}`)
    }
  if (relations.length > drawnRelations.length)
    lines.push(`  %% ${relations.length - drawnRelations.length} more tables or views are not drawn`)
  return `${lines.join('\n')}\n`
}

function quoted(text: string): string {
  return `"${text.replace(/["\p{Cc}\u2028\u2029]/gu, "'").replaceAll('%', '％')}"`
}

/** Returns the type or name of a column as one word, because Mermaid has no quotes for them. */
function oneWord(text: string): string {
  const plain = text.replace(/[^\p{L}\p{N}_()[\]-]+/gu, '_')
  return /^[\p{L}_]/u.test(plain) ? plain : `_${plain}`
}
