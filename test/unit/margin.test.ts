import { describe, expect, test } from 'vitest'
import { documents } from '../../src/wrap/documents.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { readOne } from '../support/folder.ts'
import { ranged } from '../support/ranged.ts'

const body = Array.from(
  { length: 40 },
  (_, i) => `MIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7${String(i).padStart(24, 'A')}`,
)
const key = ['-----BEGIN PRIVATE KEY-----', ...body, '-----END PRIVATE KEY-----']
const lines = Array.from({ length: 3000 }, (_, i) => `line ${i}`)
const held = {
  'key.log': `${lines.join('\n')}\n${key.join('\n')}\n`,
  // The key is still being written.
  'open.log': `${lines.join('\n')}\n${key.slice(0, 30).join('\n')}\n`,
  'plain.log': `${lines.join('\n')}\n`,
  // What makes these lines secret stands above them.
  'block.yaml': `a: 1\npassword: |\n${'  correct horse battery staple\n'.repeat(40)}b: 2\n`,
  'short.log': 'a\npassword: hunter2\nc',
  'empty.log': '',
}
const served = (mode: 'mask' | 'withhold') =>
  documents(ranged(held), { through: (provider) => redacted(provider, { mode }) })
const tail = async (path: string, count: number, mode: 'mask' | 'withhold' = 'mask') =>
  readOne(served(mode), path, { params: { tail: String(count) } })

describe('the end of a redacted text', () => {
  test.each([
    ['key.log', 1],
    ['key.log', 5],
    ['key.log', 20],
    ['open.log', 1],
    ['open.log', 10],
    ['block.yaml', 2],
    ['block.yaml', 30],
  ])('of %s shows no part of a secret in whose middle it begins (the last %i lines)', async (path, count) => {
    const content = await tail(path, count)
    const text = 'text' in content ? content.text : ''
    expect(text).toContain('[redacted]')
    expect(text).not.toMatch(/MIIBVQ|horse/)
    expect(text).not.toContain('PRIVATE KEY')
  })

  test('has the requested number of lines, and states whether there are earlier lines', async () => {
    expect(await tail('plain.log', 3)).toMatchObject({
      text: 'line 2997\nline 2998\nline 2999\n',
      meta: { 'dev.hikidashi/tail': { lines: 3, earlier: true } },
    })
    expect(await tail('plain.log', 100_000)).toMatchObject({
      meta: { 'dev.hikidashi/tail': { lines: 3000, earlier: false } },
    })
    expect(await tail('short.log', 2)).toMatchObject({
      text: 'password: [redacted]\nc',
      meta: { 'dev.hikidashi/tail': { lines: 2, earlier: true, unfinished: 'shown' } },
    })
    expect(await tail('empty.log', 2)).toMatchObject({ text: '' })
  })

  test('states no size and no byte offsets, which would disclose the length of secrets', async () => {
    const content = await tail('short.log', 1)
    expect(content).not.toHaveProperty('size')
    expect(content).not.toHaveProperty('range')
    expect(Object.keys(content.meta ?? {})).not.toContain('dev.hikidashi/part')
  })

  test('is withheld completely if configured, but only if it contains a secret', async () => {
    expect(await tail('short.log', 1, 'withhold')).toMatchObject({ meta: { 'dev.hikidashi/redacted': 'withheld' } })
    expect(await tail('plain.log', 1, 'withhold')).toMatchObject({ text: 'line 2999\n' })
  })

  test('is refused for a length that is not a number of lines from 1 to 100,000', async () => {
    for (const value of ['0', '-1', 'x', '', '1e3', '100001'])
      await expect(readOne(served('mask'), 'plain.log', { params: { tail: value } })).rejects.toMatchObject({
        kind: 'invalid',
        detail: { reason: 'parameter', parameter: 'tail' },
      })
  })
})

test('parts of a redacted text with a byte order mark are parts of the shown text', async () => {
  const text = '# 見出し\npassword: hunter2\n'
  const clean = '# 見出し\npassword: [redacted]\n'
  const marked = ranged({ 'bom.md': `\ufeff${text}` })
  // As files answer it: a part from 0 on begins behind the mark.
  const provider = redacted({
    ...marked,
    read: async (request, context) => {
      const [content] = await marked.read(request, context)
      if (content === undefined || !('text' in content) || !content.text.startsWith('\ufeff'))
        return content ? [content] : []
      const { range, ...rest } = content
      return [
        {
          ...rest,
          ...(range === undefined ? {} : { range: { start: 3, end: range.end } }),
          text: content.text.slice(1),
        },
      ]
    },
  })
  expect(await readOne(provider, 'bom.md')).toMatchObject({ text: clean })
  expect(await readOne(provider, 'bom.md', { range: { start: 0, end: 2 } })).toMatchObject({
    text: '# ',
    range: { start: 0, end: 2 },
  })
  expect(await readOne(provider, 'bom.md', { range: { start: 2 } })).toMatchObject({ text: clean.slice(2) })
})
