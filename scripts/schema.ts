/**
 * `npm run schema`: writes `config.schema.json` and the tables in `docs/configuration.md` from the schema that validates
 * configurations, and the tables in `docs/providers/README.md` from the
 * providers. A new source gets its section and rows.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { formatConfigSchema } from '../src/config/explain.ts'
import { findAbilities, withAbilities } from './abilities.ts'
import { withKeyTables, withSources } from './keys.ts'

const page = new URL('../docs/configuration.md', import.meta.url)
await writeFile(new URL('../config.schema.json', import.meta.url), await formatConfigSchema())
await writeFile(page, withKeyTables(await readFile(page, 'utf8')))
const providers = new URL('../docs/providers/README.md', import.meta.url)
await writeFile(providers, withAbilities(withSources(await readFile(providers, 'utf8')), await findAbilities()))
