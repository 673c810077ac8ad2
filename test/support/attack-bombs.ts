import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { docx, p, relationships } from '../fixtures/documents/office.ts'
import { zip } from '../fixtures/documents/zip.ts'
import type { World } from './attack-world.ts'

const times = <T>(count: number, make: (i: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, i) => make(i))

/** Each anchor names the one before it nine times. */
const laughs = (levels: number, item: (before: string) => string) =>
  ['a0: &a0 {k: v}\n', ...times(levels, (i) => `a${i + 1}: &a${i + 1} ${item(`*a${i}`)}\n`)].join('')

const nine = (text: string) => times(9, () => text).join(', ')

/** Settings files that exhaust naive parsers, by the expected outcome: an error, or an answer. */
export const settingsBombs: Readonly<
  Record<string, { readonly row: string; readonly text: string; readonly ends: 'BAD' | 'fine' }>
> = {
  'laughs.yaml': { row: 'BM01', text: laughs(12, (before) => `[${nine(before)}]`), ends: 'BAD' },
  'within.yaml': { row: 'BM01', text: 'a: &a [x, *a]\n', ends: 'BAD' },
  'shared.yaml': {
    row: 'BM01',
    text: `a: &a ${'x'.repeat(1000)}\nb: [${times(300, () => '*a').join(', ')}]\n`,
    ends: 'fine',
  },
  'merge.yaml': { row: 'BM02', text: laughs(40, (before) => `{<<: [${nine(before)}]}`), ends: 'fine' },
  'flow.yaml': { row: 'BM02', text: '['.repeat(100_000), ends: 'BAD' },
  'maps.yaml': { row: 'BM02', text: '{a: '.repeat(100_000), ends: 'BAD' },
  'dashes.yaml': { row: 'BM02', text: '- '.repeat(100_000), ends: 'BAD' },
  'indented.yaml': { row: 'BM02', text: times(800, (i) => `${' '.repeat(i)}a:\n`).join(''), ends: 'BAD' },
  'questions.yaml': { row: 'BM02', text: '? '.repeat(50_000), ends: 'BAD' },
  'twice.yaml': { row: 'BM04', text: 'a: 1\na: 2\n', ends: 'BAD' },
  'deep.json': { row: 'BM06', text: '['.repeat(1_000_000), ends: 'BAD' },
  'closed.json': { row: 'BM06', text: `${'{"a":'.repeat(120_000)}1${'}'.repeat(120_000)}`, ends: 'BAD' },
  'long.json': { row: 'BM06', text: '['.repeat(5_000_000), ends: 'BAD' },
  'keys.json': { row: 'BM06', text: `{${times(60_000, (i) => `"k${i}":${i}`).join(',')}}`, ends: 'BAD' },
  // V8 hashes numbers as property names differently from other names.
  'collisions.json': { row: 'BM06', text: `{${times(45_000, (i) => `"${i * 65_536}":0`).join(',')}}`, ends: 'fine' },
  'items.json': { row: 'BM06', text: `[${'0,'.repeat(400_000)}0]`, ends: 'BAD' },
  'deep.toml': { row: 'BM06', text: `a = ${'['.repeat(100_000)}`, ends: 'BAD' },
  'dots.toml': { row: 'BM06', text: `${'a.'.repeat(100_000)}a = 1`, ends: 'BAD' },
  'dots.properties': { row: 'BM06', text: `${'a.'.repeat(100_000)}a=1`, ends: 'fine' },
  'sections.ini': { row: 'BM06', text: times(20_000, (i) => `[s${i}]\n`).join(''), ends: 'fine' },
  'marks.yaml': {
    row: 'BM17',
    text: `a: "${'\u0301'.repeat(100_000)}"\n"\\u202eb": "${'\ufdfa'.repeat(10_000)}"\n`,
    ends: 'fine',
  },
}

/** Settings with tags and ambiguous values: they are read as YAML 1.2, and tags do nothing. */
export const tagged = {
  text: [
    'function: !!js/function "function () {}"',
    'object: !!python/object/apply:os.system ["id"]',
    'include: !include /etc/passwd',
    'custom: !custom {x: 1}',
    'country: no',
    'date: 2026-01-02',
    'octal: 017',
    'time: 12:30:45',
    'big: 123456789012345678901234567890',
    '__proto__: {polluted: 1}',
    'constructor: {prototype: {polluted: 1}}',
    '',
  ].join('\n'),
  json: `${JSON.stringify(
    {
      function: 'function () {}',
      object: ['id'],
      include: '/etc/passwd',
      custom: { x: 1 },
      country: 'no',
      date: '2026-01-02',
      octal: 17,
      time: '12:30:45',
      big: '123456789012345678901234567890',
      ['__proto__']: { polluted: 1 },
      constructor: { prototype: { polluted: 1 } },
    },
    undefined,
    2,
  )}\n`,
}

/** Texts that are slow to parse as anything but text. */
export const textBombs: Readonly<Record<string, string>> = {
  'brackets.md': `# ${'['.repeat(100_000)}\n`,
  'emphasis.md': `# a\n\n${'*a_'.repeat(60_000)}\n`,
  'quotes.md': `${'> '.repeat(60_000)}# a\n`,
  'table.md': `| ${'a | '.repeat(30_000)}\n| ${'- | '.repeat(30_000)}\n`,
  'links.md': times(20_000, (i) => `[a${i}]: <${'('.repeat(4)}\n`).join(''),
  'heading.md': `${'#'.repeat(200_000)} a\n`,
  'spaces.md': `#${' '.repeat(200_000)}a${' '.repeat(200_000)}\n`,
  'matter.md': `---\n${'? '.repeat(50_000)}\n---\n# a\n`,
  'title.md': `---\ntitle: ${'\u0301\u202e\ufdfa\u200d'.repeat(20_000)}\n---\n`,
  'columns.csv': `${','.repeat(1_000_000)}\n`,
  'quote.csv': `a,"b\n${'x,y\n'.repeat(200_000)}`,
  'returns.csv': 'a,b\r'.repeat(200_000),
  'zeros.csv': 'a,\0,b\n'.repeat(1000),
}

const png = (width: number, height: number) => {
  const header = Buffer.from('89504e470d0a1a0a0000000d49484452000000000000000008060000000000', 'hex')
  header.writeUInt32BE(width, 16)
  header.writeUInt32BE(height, 20)
  return header
}

/** Compressed files that expand enormously. */
export const binaryBombs: Readonly<Record<string, Uint8Array>> = {
  'large.png': png(50_000, 50_000),
  'frames.gif': Buffer.concat([
    Buffer.from('474946383961ffffffff800000', 'hex'),
    ...times(1000, () => Buffer.from('2c00000000ffffffff00', 'hex')),
  ]),
  'bomb.docx': zip([
    { name: '_rels/.rels', data: relationships([['rId1', 'officeDocument', 'word/document.xml']]) },
    { name: 'word/document.xml', data: Buffer.alloc(40_000_000, 0x20) },
  ]),
  'entities.docx': docx({
    prologue: `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">${times(9, (i) => `<!ENTITY a${i} "${`&a${i === 0 ? '' : i - 1};`.repeat(10)}">`).join('')}<!ENTITY f SYSTEM "file:///etc/passwd">]>`,
    body: p('&a8;&f;'),
  }),
  'blob.dat': randomBytes(8_000_000),
}

/** Writes the bombs: a folder of settings beside the root of the world, and files in the root. */
export function plantBombs(world: World): { readonly settings: string } {
  const beside = (name: string) => join(dirname(world.root), name)
  const put = (folder: string, files: Readonly<Record<string, string | Uint8Array>>) => {
    mkdirSync(folder, { recursive: true })
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  }
  const texts = Object.fromEntries(Object.entries(settingsBombs).map(([name, { text }]) => [name, text]))
  put(beside('settings'), { ...texts, 'tagged.yaml': tagged.text })
  put(join(world.root, 'bombs'), { ...textBombs, ...binaryBombs })
  return { settings: beside('settings') }
}
