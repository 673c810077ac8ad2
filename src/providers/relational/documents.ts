import { createHash } from 'node:crypto'
import { rowsMimeType } from '../../core/found.ts'
import { defined } from '../../core/kit/defined.ts'
import type { Content } from '../../core/provider.ts'
import type { EnumType, Extension, ObjectName, Relation, Routine } from './model.ts'

/** The MIME types of what is served. The formats are described in docs/providers/postgres.md. */
export const mimeTypes = {
  schema: 'application/json;format=hikidashi.DatabaseSchema',
  enum: 'application/json;format=hikidashi.DatabaseEnum',
  function: 'application/json;format=hikidashi.DatabaseFunction',
  extensions: 'application/json;format=hikidashi.DatabaseExtensions',
  overview: 'application/json;format=hikidashi.DatabaseOverview',
  rows: rowsMimeType,
  sql: 'application/sql',
  mermaid: 'text/vnd.mermaid',
} as const

/** A text as a content, whose version is another one when the text is. */
export function textContent(text: string, mimeType: string, meta?: Readonly<Record<string, unknown>>): Content {
  return {
    text,
    mimeType,
    size: Buffer.byteLength(text),
    version: versionOf(text),
    ...defined({ meta }),
  }
}

export function versionOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

export function jsonContent(value: unknown, mimeType: string, meta?: Readonly<Record<string, unknown>>): Content {
  return textContent(`${JSON.stringify(value, null, 2)}\n`, mimeType, meta)
}

/** Returns the JSON document of a table or view. Unknown values are `null`, so that every document has every key. */
export function relationDocument(relation: Relation) {
  const { schema, name, kind, owner, comment, definition, columns, primaryKey, rowEstimate } = relation
  return {
    ...schemaOf(schema),
    table: name,
    kind,
    owner: owner ?? null,
    comment: comment ?? null,
    rowEstimate: rowEstimate ?? null,
    columns: columns.map(({ name: column, type, nullable, comment: said, ...rest }) => ({
      name: column,
      type,
      nullable,
      comment: said ?? null,
      ...rest,
    })),
    primaryKey: primaryKey ?? null,
    uniqueKeys: relation.uniqueKeys,
    foreignKeys: relation.foreignKeys.map((key) => ({ ...key, references: endOf(key.references) })),
    referencedBy: relation.referencedBy.map((key) => ({ ...key, from: endOf(key.from) })),
    checks: relation.checks,
    indexes: relation.indexes,
    triggers: relation.triggers,
    definition,
  }
}

/** One end of a foreign key. */
export function endOf({ schema, name, columns }: ObjectName & { readonly columns: readonly string[] }) {
  return { ...schemaOf(schema), table: name, columns }
}

export function enumDocument({ schema, name, owner, comment, values, definition }: EnumType) {
  return { ...schemaOf(schema), enum: name, owner: owner ?? null, comment: comment ?? null, values, definition }
}

export function routineDocument({ schema, name, overloads }: Routine) {
  return { ...schemaOf(schema), function: name, overloads }
}

export function extensionsDocument(extensions: readonly Extension[]) {
  return { extensions }
}

/** A database without schemas does not say an empty one. */
export function schemaOf(schema: string): { readonly schema?: string } {
  return schema === '' ? {} : { schema }
}
