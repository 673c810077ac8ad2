/** Writes `config.schema.json` and the tables in `docs/configuration.md` from the schema that validates configurations. */
import { readFile, writeFile } from 'node:fs/promises'
import { formatConfigSchema } from '../src/config/json-schema.ts'
import { withKeyTables } from './keys.ts'

const page = new URL('../docs/configuration.md', import.meta.url)
await writeFile(new URL('../config.schema.json', import.meta.url), formatConfigSchema())
await writeFile(page, withKeyTables(await readFile(page, 'utf8')))
