import * as z from '../../schema/builder.ts'
import { secret, text } from '../../schema/fields.ts'
import { rowsKey, rowsShape, serverEffects, serverOptions, serverShape } from '../relational/config.ts'
import { defineSourceSchema, type OpenSource } from '../source.ts'

const mysqlShape = {
  url: secret.describe(
    'The URL of the database, mysql://account:password@host:3306/database, as { "env": "NAME" } or { "file": "path" }.',
  ),
  schemas: z
    .array(text)
    .min(1)
    .optionalKey(
      'The databases that are served. If there is only one, paths do not contain its name: …/customers/schema. By default the database of the URL; if the URL names none, all except system databases.',
    ),
  rows: rowsKey(rowsShape),
  ...serverShape,
}

export const source = defineSourceSchema({
  about: 'A database of MySQL or MariaDB: its tables, and their rows if "rows" is set.',
  shape: mysqlShape,
  effects: serverEffects,
})

export const open: OpenSource<typeof source> = async (mountOptions, { folder, log }) => {
  const options = await serverOptions(mountOptions, folder)
  const [{ mysql }, { sliced }] = await Promise.all([import('./index.ts'), import('../../wrap/sliced.ts')])
  return sliced(await mysql({ ...options, log }))
}
