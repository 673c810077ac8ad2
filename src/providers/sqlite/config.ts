import { text } from '../../schema/fields.ts'
import { pathEffects } from '../../schema/shapes.ts'
import {
  connectionsShape,
  databaseEffects,
  relationalShape,
  rowsKey,
  rowsShape,
  timeoutShape,
} from '../relational/config.ts'
import { defineSourceSchema } from '../source.ts'

const sqliteShape = {
  file: text.describe(
    'The file of the database. A relative path starts at the configuration file. Neither this file nor another in its folder is ever written.',
  ),
  rows: rowsKey(rowsShape),
  ...relationalShape,
  ...connectionsShape('Maximum number of processes that read the file at once. By default 2.'),
  ...timeoutShape,
}

export const source = defineSourceSchema({
  about: 'A database in a file of SQLite: its tables, and their rows if "rows" is set.',
  shape: sqliteShape,
  effects: { options: { ...databaseEffects, file: pathEffects } },
})
