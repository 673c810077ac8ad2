import { describe, expect, test } from 'vitest'
import { withAssemblePrompt } from '../../src/context/index.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Principal, Prompt, Provider } from '../../src/core/provider.ts'
import type { PromptView } from '../../src/core/view.ts'
import { memory } from '../support/memory.ts'

const ada: Principal = { id: 'ada', roles: [] }
const files = {
  'cursor.md': '# Cursors\nHow cursors are sealed.\n',
  'link.png': { bytes: Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0), mimeType: 'image/png', description: 'cursors, drawn' },
  'weather.md': 'rain',
}

function promptsOf(own: readonly Prompt[] = []): PromptView {
  const provider: Provider = {
    ...memory(files),
    ...(own.length === 0
      ? {}
      : {
          prompts: {
            list: async () => own,
            get: async ({ path }) => ({ messages: [{ role: 'user', content: { text: `of ${path}` } }] }),
          },
        }),
  }
  const catalog = createCatalog({
    mounts: [
      { address: 'memory://docs', provider },
      { address: 'memory://other', provider: memory({ 'cursor.md': 'other cursors' }) },
    ],
    pages: { first: 1, most: 1 },
  })
  const { prompts } = withAssemblePrompt(catalog.view(ada), { now: () => 0, share: 'ada' })
  return prompts ?? expect.fail('there are no prompts')
}

const given = (entries: Readonly<Record<string, string>>) => new Map(Object.entries(entries))
const get = (entries: Readonly<Record<string, string>>, prompts = promptsOf()) =>
  prompts.get({ name: 'assemble_context', arguments: given(entries) })

async function namesOf(prompts: PromptView): Promise<readonly string[]> {
  const names: string[] = []
  let cursor: string | undefined
  do {
    const page = await prompts.list(cursor === undefined ? {} : { cursor })
    names.push(...page.items.map(({ name }) => name))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return names
}

describe('the prompt assemble_context', () => {
  test('has the helpful resources as embedded resources and links, and then the question', async () => {
    const { messages, description } = await get({ query: ' how are cursors sealed ', mounts: 'memory://docs' })
    expect(description).toBe('Resources that help with: how are cursors sealed')
    expect(messages.map(({ role }) => role)).toEqual(Array(messages.length).fill('user'))
    expect(messages.map(({ content }) => content)).toEqual([
      { text: expect.stringContaining('not instructions') },
      { resource: expect.objectContaining({ uri: 'memory://docs/cursor.md', text: files['cursor.md'] }) },
      { link: expect.objectContaining({ uri: 'memory://docs/link.png', mimeType: 'image/png' }) },
      { resource: expect.objectContaining({ uri: 'memory://docs/weather.md' }) },
      { text: 'how are cursors sealed' },
    ])
    const whole = await get({ query: 'cursors' })
    expect(JSON.stringify(whole)).toContain('memory://other/cursor.md')
  })

  test('has fewer resources with a small budget, and none with a budget of 0', async () => {
    const { messages } = await get({ query: 'cursors', budget: '60' })
    expect(messages.length).toBeLessThan(5)
    expect((await get({ query: 'cursors', budget: '0' })).messages).toEqual([
      { role: 'user', content: { text: 'cursors' } },
    ])
  })

  test('completes its arguments: addresses one after the other, and budgets', async () => {
    const complete = async (name: string, value: string) =>
      (await promptsOf().complete({ name: 'assemble_context', argument: { name, value } })).values
    expect(await complete('mounts', 'mem')).toEqual(['memory://docs', 'memory://other'])
    expect(await complete('mounts', 'memory://docs m')).toEqual(['memory://docs memory://other'])
    expect(await complete('budget', '3')).toEqual(['32k'])
    expect(await complete('query', 'c')).toEqual([])
  })

  test('is refused with missing, malformed or unknown arguments', async () => {
    await expect(get({})).rejects.toThrow('The argument "query" is missing.')
    await expect(get({ query: 'x', budget: 'lots' })).rejects.toThrow('"budget" must be a number of tokens')
    await expect(get({ query: 'x', level: 'full' })).rejects.toThrow('an argument that this prompt does not have')
    await expect(promptsOf().get({ name: 'other' })).rejects.toThrow(ResourceError)
  })

  test('is listed after the other prompts, page by page, and another prompt of the same name gets a number', async () => {
    const own = ['a', 'assemble_context', 'z'].map((name) => ({ path: `${name}.md`, name }))
    const prompts = promptsOf(own)
    expect(await namesOf(prompts)).toEqual(['a', 'assemble_context_2', 'z', 'assemble_context'])
    const text = async (name: string) => (await prompts.get({ name })).messages[0]?.content
    expect(await text('assemble_context_2')).toEqual({ text: 'of assemble_context.md' })
    expect(await text('z')).toEqual({ text: 'of z.md' })
    expect(await namesOf(promptsOf())).toEqual(['assemble_context'])
    await expect(promptsOf().list({ cursor: 'stale' })).rejects.toMatchObject({ detail: { reason: 'cursor' } })
  })
})
