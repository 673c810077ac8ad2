import { text } from '../../schema/fields.ts'
import {
  connectionsShape,
  relationalShape,
  rowsKey,
  rowsShape,
  timeoutShape,
  viewsShape,
} from '../relational/config.ts'

/** The options of a mount whose provider is `sqlite`. */
export const sqliteShape = {
  file: text.describe(
    'The file of the database. A relative path starts at this file. It is read, and neither it nor anything beside it is ever written.',
  ),
  rows: rowsKey({ ...rowsShape, ...viewsShape }),
  ...relationalShape,
  ...connectionsShape('How many processes read the file at once, at most. By default 2.'),
  ...timeoutShape,
}
