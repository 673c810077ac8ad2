import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { cleanText } from '../../src/core/entry.ts'
import type { Provider } from '../../src/core/provider.ts'
import {
  promptsToWire,
  promptToWire,
  readToWire,
  resourcesToWire,
  templatesToWire,
} from '../../src/server/protocol/wire.ts'
import { memory } from '../support/memory.ts'

const point = (...codes: readonly number[]) => String.fromCodePoint(...codes)
/** Each character that may act, between two letters, and the end of a line. */
const bad = [
  ...Array.from({ length: 0x20 }, (_, code) => code).filter((code) => code < 9 || code > 13),
  ...Array.from({ length: 0x21 }, (_, at) => 0x7f + at).filter((code) => code !== 0x85),
  ...[0x61c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069],
  ...[0xe0001, 0xe0020, 0xe0049, 0xe007f],
]
const evil = `A${bad.map((code) => `${point(code)}a`).join('')}\r\n${point(0x1b)}]0;owned${point(7)}日本é`
const clean = `A${'a'.repeat(bad.length)} ]0;owned日本é`
const acting = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\u{e0000}-\u{e007f}]/u

const foreign: Provider = {
  ...memory({ 'a.md': { text: 'x' }, 'plain.md': { text: 'x' } }),
  list: async function* () {
    yield { path: 'a.md', name: `n${evil}`, title: evil, description: evil }
    yield { path: 'plain.md' }
  },
  stat: async () => ({ path: 'a.md', title: evil, description: evil }),
  read: async () => [{ text: evil, title: evil }],
  templates: async () => [
    { template: '{+path}', name: 'theirs', title: evil, description: evil, meta: { 'dev.hikidashi/via': ['other'] } },
    { template: 'own/{id}', name: 'ours', title: 'Ours' },
  ],
  prompts: {
    list: async () => [
      {
        path: 'a.md',
        name: 'p',
        title: evil,
        description: evil,
        arguments: [{ name: 'q', title: evil, description: evil }],
      },
    ],
    get: async () => ({ description: evil, messages: [] }),
  },
}

const revision = '2025-06-18'
const view = () =>
  createCatalog({
    mounts: [{ address: 'docs://m', provider: foreign, title: 'The operator says', description: 'so' }],
  }).view({ id: 'x', roles: [] })
const untrusted = (fields: readonly string[]) => ({ 'dev.hikidashi/untrusted': fields })

describe('titles, descriptions and names from contents', () => {
  test('lose control, direction and tag characters, and keep letters, accents and emoji', () => {
    expect(cleanText(evil)).toBe(clean)
    for (const code of bad) expect(cleanText(`a${point(code)}b`), code.toString(16)).toBe('ab')
    const kept = 'é 日本語 עברית العربية 👩‍👩‍👧 e\u0301 –…'
    expect(cleanText(kept)).toBe(kept)
  })

  test('are cleaned and marked as untrusted in lists, and texts of the operator are not marked', async () => {
    const mounts = await view().mounts()
    const wire = resourcesToWire(await view().list(), revision, mounts) as Record<string, unknown>
    expect(wire.resources).toMatchObject([
      { title: clean, description: clean, _meta: untrusted(['title', 'description']) },
      { name: 'plain.md' },
    ])
    expect(JSON.stringify((wire.resources as unknown[])[1])).not.toContain('untrusted')
    expect(JSON.stringify(wire._meta)).toContain('The operator says')
    expect(JSON.stringify(wire._meta)).not.toContain('untrusted')
    const directory = await view().directory({ uri: 'docs://m/' })
    expect(resourcesToWire(directory, revision)).toMatchObject({ resources: [{ title: clean }, {}] })
  })

  test('are cleaned in templates, and marked as untrusted if another server wrote them', async () => {
    const { resourceTemplates } = templatesToWire(await view().templates(), revision) as Record<string, unknown[]>
    expect(resourceTemplates).toMatchObject([
      { title: clean, description: clean, _meta: untrusted(['title', 'description']) },
      { title: 'Ours' },
    ])
    expect(JSON.stringify(resourceTemplates?.[1])).not.toContain('untrusted')
  })

  test('are cleaned and marked as untrusted in prompts', async () => {
    const { prompts } = view()
    if (prompts === undefined) throw new Error('no prompts')
    expect(promptsToWire(await prompts.list(), revision)).toMatchObject({
      prompts: [
        {
          ...{ title: clean, description: clean, _meta: untrusted(['title', 'description']) },
          arguments: [{ name: 'q', title: clean, description: clean }],
        },
      ],
    })
    const filled = await promptToWire(await prompts.get({ name: 'p' }), revision)
    expect(filled).toMatchObject({ description: clean, _meta: untrusted(['description']) })
  })

  test('are cleaned and marked as untrusted in reads, whose text is unchanged', async () => {
    const { contents } = (await readToWire(await view().read('docs://m/a.md'), revision)) as Record<string, unknown[]>
    expect(contents).toMatchObject([{ title: clean, text: evil, _meta: untrusted(['title']) }])
  })

  test('have no control character left, in any revision', async () => {
    for (const each of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const) {
      const wires = [resourcesToWire(await view().list(), each), templatesToWire(await view().templates(), each)]
      const texts: string[] = []
      JSON.stringify(wires, (_, value: unknown) => {
        if (typeof value === 'string') texts.push(value)
        return value
      })
      expect(texts.length).toBeGreaterThan(4)
      expect(
        texts.filter((text) => acting.test(text)),
        each,
      ).toEqual([])
    }
  })
})
