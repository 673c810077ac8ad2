import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'

export async function start(folder: string) {
  const file = join(folder, '.git', 'sample.db')
  const database = new DatabaseSync(file)
  database.exec("CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO person VALUES (1, 'a')")
  database.close()
  return { mount: { file } }
}
