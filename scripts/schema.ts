/** Writes `config.schema.json` from the schema that validates configurations. Run: `npm run schema`. */
import { writeFile } from 'node:fs/promises'
import { formatConfigSchema } from '../src/config/json-schema.ts'

await writeFile(new URL('../config.schema.json', import.meta.url), formatConfigSchema())
