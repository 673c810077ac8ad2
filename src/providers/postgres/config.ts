import * as z from '../../schema/builder.ts'
import { secret, text } from '../../schema/fields.ts'
import { refusal } from '../../schema/refusals.ts'
import { rowsKey, rowsShape, serverEffects, serverOptions, serverShape } from '../relational/config.ts'
import { defineSourceSchema, type OpenSource } from '../source.ts'

const postgresShape = {
  url: secret.describe(
    'The URL of the database, postgres://role:password@host:5432/database, as { "env": "NAME" } or { "file": "path" }.',
  ),
  schemas: z
    .array(text)
    .min(1)
    .optionalKey(
      'The schemas that are served. If there is only one, paths do not contain its name: …/customers/schema. By default all except system schemas.',
    ),
  rows: rowsKey({
    ...rowsShape,
    principalSetting: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_.]*$/, {
        error: refusal('This is not the name of a custom setting.', 'Write a name with a dot, such as "app.user".'),
      })
      .optionalKey(
        'A setting such as "app.user" that gets the id of the caller while rows are read. Policies of row-level security can use it.',
      ),
  }),
  ...serverShape,
}

export const source = defineSourceSchema({
  about: 'A database of PostgreSQL: its tables, and their rows if "rows" is set.',
  shape: postgresShape,
  effects: serverEffects,
})

export const open: OpenSource<typeof source> = async (mountOptions, { folder, log }) => {
  const options = await serverOptions(mountOptions, folder)
  const [{ postgres }, { sliced }] = await Promise.all([import('./index.ts'), import('../../wrap/sliced.ts')])
  return sliced(await postgres({ ...options, log }))
}
