import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { abilityTables, withAbilities } from '../../scripts/abilities.ts'
import { providers } from '../../src/providers/index.ts'

const page = await readFile(new URL('../../docs/providers/README.md', import.meta.url), 'utf8')

test('the tables in docs/providers/README.md are what the providers can do: if not, npm run schema', async () => {
  expect(page).toBe(await withAbilities(page))
})

test('every provider is in them, with its page', async () => {
  const tables = await abilityTables()
  for (const name of Object.keys(providers)) {
    expect(tables).toContain(`[${name}](${name}.md)`)
    expect(page).toContain(`| [${name}](${name}.md) |`)
  }
})
