import { afterAll, describe, expect, test } from 'vitest'
import { settings } from '../../src/providers/settings/index.ts'
import { readOne } from '../support/folder.ts'
import { memory } from '../support/memory.ts'

const source = memory({})
const provider = settings({ source, allow: ['X', 'Z'] })
afterAll(() => provider.close?.())

/** The JSON of a file of settings. */
async function shown(name: string, text: string): Promise<unknown> {
  source.entries.set(name, { text })
  const content = await readOne(provider, name, { params: { as: 'json' } })
  return JSON.parse('text' in content ? content.text : '')
}

describe('a TOML file', () => {
  test.each<[string, unknown]>([
    ['a = "x\\r\\ny"', { a: 'x\r\ny' }],
    ['"x\\r\\ny" = 1', { 'x\r\ny': 1 }],
    ['a = "\\x0d\\x0a"', { a: '\r\n' }],
    ['a = """x\r\ny"""', { a: 'x\r\ny' }],
    ['a = """x \\\r\n   y"""', { a: 'x y' }],
    ['a = """x \\\\\ny"""', { a: 'x \\\ny' }],
    ['a = """x \\  \n\n  y \\\\\\\n  z"""', { a: 'x y \\z' }],
    ["a = 'x\\r\\ny'", { a: 'x\\r\\ny' }],
    ['\ufeffa = 1', { a: 1 }],
    ['a = +inf\nb = -nan\nc = -inf', { a: 'inf', b: 'nan', c: '-inf' }],
    ['a = 1979-05-27 07:32z\nb = 07:32\nc = 1979-05-27', { a: '1979-05-27T07:32:00Z', b: '07:32:00', c: '1979-05-27' }],
    ['a = 2000-02-29', { a: '2000-02-29' }],
    ['a = 0xff\nb = 1_000\nc = 1e3', { a: 255, b: 1000, c: 1000 }],
  ])('is read as TOML specifies: %j', async (text, wanted) => {
    expect(await shown('a.toml', text)).toEqual(wanted)
  })

  test.each([
    ['a = 1\nb = ]', 2, 5],
    ['a = 1\nb = 2021-02-30', 2, 5],
    ['a = 1900-02-29T00:00:00Z', 1, 5],
    ['[a]\nb = 1\nb = 2', 3, 1],
  ])('that is invalid is refused with the position: %j', async (text, line, column) => {
    await expect(shown('a.toml', text)).rejects.toMatchObject({ kind: 'invalid', detail: { line, column } })
  })
})

describe('a YAML file', () => {
  test.each<[string, unknown]>([
    ['!!omap\n- a: 1\n- b: 2\n', [{ a: 1 }, { b: 2 }]],
    ['x: !!omap [a: 1]\n', { x: [{ a: 1 }] }],
    ['%YAML 1.1\n---\nx: !!omap\n- a: 1\n', { x: [{ a: 1 }] }],
    ['!!set\n? a\n? b\n', { a: null, b: null }],
    ['!!pairs [a: 1, a: 2]\n', [{ a: 1 }, { a: 2 }]],
    ['!!binary aGk=\n', 'aGk='],
    ['x: !!timestamp 2001-01-01\n', { x: '2001-01-01' }],
    ['&a one: 1\ntwo: *a\n', { one: 1, two: 'one' }],
    ['one: &a x\n*a : 2\n', { one: 'x', x: 2 }],
    ['&a one: &b two\n*b : *a\n', { one: 'two', two: 'one' }],
    ['&a: key: &a value\nfoo:\n  *a:\n', { key: 'value', foo: 'key' }],
    ['? &a a\n: &b b\n: *a\n', { a: 'b', '': 'a' }],
    ['? [&a x, y]\n: *a\n', { '[&a x, y]': 'x' }],
    ['- ? earth: blue\n  : moon\n', [{ 'earth: blue': 'moon' }]],
    ['x: &a [1, 2]\n*a : 3\n', { x: [1, 2], '[1, 2]': 3 }],
    ['# only a comment\n', null],
    ['', null],
    ['...\n# nothing\n', null],
    ['%YAML 1.2\n---\na\n...\n%YAML 1.2\n---\nb\n', ['a', 'b']],
    ['a\n...\n# nothing\n...\nb\n', ['a', 'b']],
    ['a\n---\n---\nb\n', ['a', null, 'b']],
  ])('is read as YAML 1.2 specifies, and types of YAML 1.1 as plain values: %j', async (text, wanted) => {
    expect(await shown('a.yaml', text)).toEqual(wanted)
  })

  test.each([
    ['a: 1\n*b : 2\n', 2, 1],
    ['a: &a\n  b: *a\n', 2, 6],
    ['x: &a y\n*a : 1\ny: 2\n', 3, 1],
    ['%YAML 1.2\n', 2, 1],
    ['%YAML 1.2\n# again\n%YAML 1.2\n---\n', 3, 1],
    ['a\n...\n%YAML 1.2\n%YAML 1.1\n---\n', 4, 1],
    ['a: !!omap\n- b: [\n', 3, 1],
  ])('that is invalid is refused with the position: %j', async (text, line, column) => {
    await expect(shown('a.yaml', text)).rejects.toMatchObject({ kind: 'invalid', detail: { line, column } })
  })

  test('hides a secret in a key that an alias repeats', async () => {
    expect(await shown('a.yaml', '&a hunter22: 1\npassword: *a\n')).toEqual({ '[redacted]': 1, password: '[redacted]' })
  })
})

describe('a dotenv file', () => {
  test.each([
    ['8080 # dev port', '8080'],
    ['8080\t# dev port', '8080'],
    ['8080# dev port', '8080'],
    ['# dev port', ''],
    ['', ''],
    ['  a b  ', 'a b'],
    ['"a # b" # c', 'a # b'],
    ['"a"#c', 'a'],
    ["'a # b'#c", 'a # b'],
    ['`a # b`', 'a # b'],
    ['"a\\nb"', 'a\nb'],
    ["'a\\nb'", 'a\\nb'],
    ['"a\\tb\\\\"', 'a\\tb\\\\'],
    ['"a\\"b"', 'a"b'],
    ["'a\\'b'", "a\\'b"],
    ["'C:\\'", 'C:\\'],
    ['"one\r\ntwo" # c', 'one\ntwo'],
    ['"open', '"open'],
    ['"a" b', '"a" b'],
    ['a=b', 'a=b'],
  ])('has the value that programs read from %j', async (written, wanted) => {
    for (const head of ['X=', 'export X = ', '\ufeffX=', '  X: '])
      for (const end of ['\n', '\r\n'])
        expect(await shown('.env', `${head}${written}${end}Z=1${end}`)).toEqual({ X: wanted, Z: '1' })
  })

  test('shows no text after a hidden value without quotes, but a comment after a hidden value in quotes', async () => {
    source.entries.set('.env', { text: 'KEY=one #two\nB="three" # four\n' })
    expect(await readOne(provider, '.env')).toMatchObject({ text: 'KEY=[redacted]\nB="[redacted]" # four\n' })
  })
})
