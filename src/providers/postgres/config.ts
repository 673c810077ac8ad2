import * as z from '../../schema/builder.ts'
import { secret, text } from '../../schema/fields.ts'
import { refusal } from '../../schema/refusals.ts'
import { relationalShape, rowsKey, rowsShape, serverEffects, serverShape, viewsShape } from '../relational/config.ts'
import { defineSource } from '../source.ts'

/** The options of a mount whose provider is `postgres`. */
export const postgresShape = {
  url: secret.describe(
    'Where the URL of the database is, postgres://role:password@host:5432/database: { "env": "NAME" } or { "file": "path" }.',
  ),
  schemas: z
    .array(text)
    .min(1)
    .exactOptional()
    .describe(
      'The schemas that are served. Of a single one the name is left out of paths: …/customers/schema. By default all but those of the system.',
    ),
  rows: rowsKey({
    ...rowsShape,
    ...viewsShape,
    principalSetting: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_.]*$/, {
        error: refusal('This is not the name of a setting of your own.', 'Write one with a dot: "app.user".'),
      })
      .exactOptional()
      .describe(
        'A setting that holds the id of who asks while rows are read, such as "app.user": policies of row-level security can ask for it.',
      ),
  }),
  ...relationalShape,
  ...serverShape,
}

export const source = defineSource({
  about: 'A database of PostgreSQL: its tables, and rows where they are asked for.',
  shape: postgresShape,
  effects: serverEffects,
})
