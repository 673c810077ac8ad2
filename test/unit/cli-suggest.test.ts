import { describe, expect, test } from 'vitest'
import { nearestUri, withSuggestion } from '../../src/cli/operations/source.ts'
import { commandForSynonym } from '../../src/cli/program.ts'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { memory } from '../support/memory.ts'

const provider = memory({
  'README.md': '',
  'docs/guide.md': '',
  'docs/設計.md': '',
  'secret/plans.md': '',
})
const access = compileAccess([{ allow: ['*'] }, { deny: ['*'], match: 'secret/**' }])
const catalog = createCatalog({
  mounts: [
    { address: 'file:///project', provider, access },
    { address: 'git:///project', provider: memory({ 'commits/a': '' }) },
  ],
})
const view = catalog.view({ id: 'me', roles: [] })

describe('the suggestion for a wrong URI', () => {
  test.each([
    ['file:///projct', 'file:///project'],
    ['file:///projct/README.md', 'file:///project/README.md'],
    ['file:///project/docs/giude.md', 'file:///project/docs/guide.md'],
    ['file:///project/dcos/guid.md', 'file:///project/docs/guide.md'],
    ['file:///project/docs/guide', 'file:///project/docs/guide.md'],
    ['file:///project/docs/%E8%A8%AD%E8%A8%88.txt', 'file:///project/docs/%E8%A8%AD%E8%A8%88.md'],
    ['gti:///project/commits/a', 'git:///project/commits/a'],
    ['file:///project/dosc/nothing-like-it', 'file:///project/docs/'],
  ])('for %s is %s', async (uri, meant) => expect(await nearestUri(view, uri)).toBe(meant))

  test.each([
    'file:///project/something-else',
    'https://example.org/a',
    'file:///project/README.md',
    'no uri',
    '',
    // What may not be seen is not told of, however near.
    'file:///project/secre/plans.md',
    'file:///project/secret/plan.md',
  ])('for %s is empty', async (uri) => expect(await nearestUri(view, uri)).toBeUndefined())

  test('is shown with the error, the same for a denied as for an absent URI', async () => {
    const message = async (uri: string) => {
      const error = await withSuggestion(uri, view.read(uri), view).catch((thrown: Error) => thrown)
      return error instanceof Error ? error.message.replaceAll(uri, 'URI') : ''
    }
    expect(await message('file:///project/READNE.md')).toMatch(/Did you mean file:\/\/\/project\/README\.md \?$/)
    const denied = await message('file:///project/secret/plans.md')
    expect(denied).toBe(await message('file:///project/absent/plans.md'))
    expect(denied).toBe('URI does not exist, or you may not see it. To list the resources: hikidashi ls')
  })

  test('is omitted if a listing fails', async () => {
    const broken = { ...view, directory: () => Promise.reject(new Error('away')) }
    expect(await nearestUri(broken, 'file:///project/READNE.md')).toBeUndefined()
  })
})

test('the suggestion for the name of another program is the command that does the same', () => {
  expect(commandForSynonym('cat')).toBe('read')
  expect(commandForSynonym('rg')).toBe('grep')
  expect(commandForSynonym('ls')).toBeUndefined()
  expect(commandForSynonym('constructor')).toBeUndefined()
  expect(commandForSynonym('nothing-like-it')).toBeUndefined()
})
