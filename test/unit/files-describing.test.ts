import { expect, test } from 'vitest'
import { mimeTypeByName, mimeTypeOfFile } from '../../src/providers/files/options.ts'
import { headingIn } from '../../src/text/front-matter.ts'

test.each([
  ['# Title', 'Title'],
  ['\ufeff#\tTitle ##  ', 'Title'],
  ['text\n\n## Second *level* `code` [link](x) ![img](y) <b>z</b>', 'Second level code link img z'],
  ['Setext\n======', 'Setext'],
  ['Two\nlines\n---\n', 'Two lines'],
  ['---\ntitle: x\n# not this\n---\n# This', 'This'],
  ['+++\n# no\n+++\nThis\n===', 'This'],
  ['```\n# no\n```\n# This', 'This'],
  ['~~~~ js\n# no\n~~~\n# no\n~~~~\n# This', 'This'],
  ['<!--\n# no\n-->\n# This', 'This'],
  ['- item\n---\n# This', 'This'],
  ['    # code\n# snake_case_name', 'snake_case_name'],
  ['#no\n#', undefined],
  ['---\nnever ends\n# no', undefined],
  ['', undefined],
  ['#  \n# 見出し𠮷', '見出し𠮷'],
])('the heading of %j is %j', (text, title) => {
  expect(headingIn(text)).toBe(title)
})

test.each([
  [' ', undefined, undefined],
  ['\t', undefined, undefined],
  ['#', undefined, undefined],
  ['# ', '# ', '# '],
  ['[', '[', undefined],
  ['`', undefined, undefined],
  ['<', '<', undefined],
  ['=', '=', undefined],
  ['_', undefined, undefined],
  ['*', undefined, undefined],
  ['# a #', '# a #', 'a ## '],
  ['# [', '# [', '[# '],
  ['# <', '# <', '<# '],
])(
  'a megabyte of %j gives as its heading, after "# " and alone, 200 characters of %j and of %j (undefined: no heading)',
  (part, after, alone) => {
    const text = part.repeat(1_000_000 / part.length)
    expect(headingIn(`# ${text}`)).toBe(after?.repeat(200).slice(0, 200))
    expect(headingIn(text)).toBe(alone?.repeat(200).slice(0, 200))
  },
)

test('MIME types of source files are found by name or extension, in any letter case', () => {
  const types = {
    'a.ts': 'text/typescript', 'a.TSX': 'text/tsx', 'a.mts': 'text/typescript', 'main.rs': 'text/x-rust', 'a.py': 'text/x-python',
    'a.go': 'text/x-go', 'a.vue': 'text/x-vue', 'a.proto': 'text/x-protobuf', Dockerfile: 'text/x-dockerfile',
    'Dockerfile.dev': 'text/x-dockerfile', Makefile: 'text/x-makefile', 'a.jsonc': 'application/json', 'Cargo.toml': 'application/toml',
    '.gitignore': 'text/plain', 'a.md': 'text/markdown', 'a.png': 'image/png', 'a.svg': 'image/svg+xml', LICENSE: 'text/plain',
    'a.b.json': 'application/json', 'no-extension': undefined, '.unknown': undefined, 'a.': undefined, constructor: undefined,
    'a.constructor': undefined, 'a.__proto__': undefined, 'a.pdf': 'application/pdf',
  } // biome-ignore format: a table
  for (const [name, type] of Object.entries(types)) expect(mimeTypeByName(name), name).toBe(type)
})

test('the MIME type of a file comes from its content where the type of its name does not fit, or its name has none', () => {
  const head = (text: string) => Buffer.from(text, 'latin1')
  const binary = (name: string, bytes: string) => mimeTypeOfFile(name, { text: false, head: head(bytes) })
  const text = (name: string, bytes = 'text') => mimeTypeOfFile(name, { text: true, head: head(bytes) })
  expect(binary('a.ts', '\0\x01')).toBe('application/octet-stream')
  expect(binary('a.json', '\xff')).toBe('application/octet-stream')
  expect(binary('a.png', '\x89PNG')).toBe('image/png')
  expect(binary('data', '\x89PNG\r\n\x1a\n..')).toBe('image/png')
  expect(binary('data', '\xff\xd8\xff\xe0')).toBe('image/jpeg')
  expect(binary('data', 'GIF89a')).toBe('image/gif')
  expect(binary('data', 'RIFF\0\0\0\0WEBP')).toBe('image/webp')
  expect(binary('data', 'PK\x03\x04')).toBe('application/zip')
  expect(binary('data', '\x1f\x8b\x08')).toBe('application/gzip')
  expect(binary('data', '\0')).toBe('application/octet-stream')
  expect(text('data')).toBe('text/plain')
  expect(text('a.png')).toBe('text/plain')
  expect(text('a.svg')).toBe('image/svg+xml')
  expect(text('a.pdf', '%PDF-1.4')).toBe('application/pdf')
  expect(text('data', '%PDF-1.4')).toBe('application/pdf')
})
