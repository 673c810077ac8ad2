import * as z from '../../schema/builder.ts'
import { secret, text } from '../../schema/fields.ts'
import { relationalShape, rowsKey, rowsShape, serverEffects, serverShape, viewsShape } from '../relational/config.ts'
import { defineSource } from '../source.ts'

/** The options of a mount whose provider is `mysql`. */
export const mysqlShape = {
  url: secret.describe(
    'Where the URL of the database is, mysql://account:password@host:3306/database: { "env": "NAME" } or { "file": "path" }.',
  ),
  schemas: z
    .array(text)
    .min(1)
    .exactOptional()
    .describe(
      'The databases that are served. Of a single one the name is left out of paths: …/customers/schema. By default that of the URL; where it names none, all but those of the system.',
    ),
  rows: rowsKey({ ...rowsShape, ...viewsShape }),
  ...relationalShape,
  ...serverShape,
}

export const source = defineSource({
  about: 'A database of MySQL or MariaDB: its tables, and rows where they are asked for.',
  shape: mysqlShape,
  effects: serverEffects,
})
