import { readFile } from 'node:fs/promises'
import { beforeAll, expect, test } from 'vitest'
import { type Abilities, findAbilities, withAbilities } from '../../scripts/abilities.ts'
import { withSources } from '../../scripts/keys.ts'
import { sources } from '../../src/providers/index.ts'

let abilities: Abilities
beforeAll(async () => {
  abilities = await findAbilities()
})
const page = await readFile(new URL('../../docs/providers/README.md', import.meta.url), 'utf8')

test('the tables in docs/providers/README.md are those that "npm run schema" writes', () => {
  expect(page).toBe(withAbilities(withSources(page), abilities))
})

test('every provider is in the tables of docs/providers/README.md, with a link to its page', () => {
  const { tables } = abilities
  for (const name of Object.keys(sources)) {
    expect(tables).toContain(`[${name}](${name}.md)`)
    expect(page).toContain(`| [${name}](${name}.md) |`)
  }
})

test('every variable of every URI template is completed from existing resources, unless its provider declares that it takes any value', () => {
  // The document is not a spreadsheet, so it has no sheets. Leave out "sheet".
  const bare = ['gdrive: {+path}{?form,sheet,lines,bytes}: sheet']
  expect(abilities.uncompleted.filter((variable) => !bare.includes(variable))).toEqual([])
})

test('the configuration of a mount tells whether the mount reports changes, before the mount is open', () => {
  expect(abilities.misjudged).toEqual([])
})
