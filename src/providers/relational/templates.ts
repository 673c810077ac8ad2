import type { Template } from '../../core/provider.ts'
import { mimeTypes } from './documents.ts'
import type { Source } from './source.ts'

/** The templates of a source. Names stand in them as segments: see names.ts. */
export function templatesOf(source: Source, hasRows: boolean): readonly Template[] {
  const head = source.schema === undefined ? '{schema}/' : ''
  const has = (kind: 'enum' | 'function') => source.kinds.includes(kind)
  return [
    {
      template: `${head}{table}/schema`,
      name: 'Table',
      title: 'A table or view: columns, keys, foreign keys both ways, indexes',
      description: 'As JSON; its definition as SQL is in it.',
      mimeType: mimeTypes.schema,
    },
    {
      template: `${head}{table}/schema.sql`,
      name: 'Table as SQL',
      title: 'The statements that make a table or view',
      mimeType: mimeTypes.sql,
    },
    {
      template: 'overview{?format}',
      name: 'Overview',
      title: 'Tables and how they refer to each other',
      description: 'As JSON with a diagram in it, or with format=mermaid the diagram alone.',
    },
    ...(source.schema === undefined
      ? [
          {
            template: '{schema}/overview{?format}',
            name: 'Overview of a schema',
            title: 'The tables of a schema and how they refer to each other',
          },
        ]
      : []),
    ...(has('enum')
      ? [{ template: `${head}{enum}/enum`, name: 'Enum', title: 'An enum and its values', mimeType: mimeTypes.enum }]
      : []),
    ...(has('function')
      ? [
          {
            template: `${head}{function}/function`,
            name: 'Function',
            title: 'The functions and procedures of a name, with their definitions',
            mimeType: mimeTypes.function,
          },
        ]
      : []),
    ...(hasRows && source.rows !== undefined
      ? [
          {
            template: `${head}{table}/rows{?limit,after,columns}`,
            free: ['limit', 'after'],
            name: 'Rows',
            title: 'Rows of a table, in the order of its key',
            description:
              'limit is 100 unless told; after is what "next" of an answer says; columns is names with commas between.',
            mimeType: mimeTypes.rows,
          },
          {
            template: `${head}{table}/rows/{key}`,
            name: 'Row',
            title: 'The row with a primary key',
            description: 'A key of several columns has commas between: 7,en.',
            mimeType: mimeTypes.rows,
          },
        ]
      : []),
  ]
}
