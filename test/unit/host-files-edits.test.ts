import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serversOf, withEntry, withoutEntry } from '../../src/cli/hosts/change.ts'
import { settingsEditorFor } from '../../src/cli/hosts/format.ts'
import type { Host } from '../../src/cli/hosts/types.ts'
import { createPlace, hostCalled, openWith, started } from '../support/hosts.ts'
import { volumeOf } from '../support/volume.ts'

let machine: Awaited<ReturnType<typeof createPlace>>
beforeAll(async () => {
  machine = await createPlace()
})
afterAll(() => machine.remove())

const [zed, codex, goose, gemini] = ['zed', 'codex', 'goose', 'gemini-cli'].map(hostCalled) as [Host, Host, Host, Host]
const name = fc.stringMatching(/^[a-z][a-z0-9_-]{0,6}$/)
const eol = fc.constantFrom('\n', '\r\n')
const word = fc.constantFrom('x', '日本', 'a "b"', "it's", '# no', '// no', '{', '[mcp_servers.x]', 'a: b', '\\', '')

/** JSON as people and programs write it: any blanks, comments and commas at the end. */
const blank = fc.constantFrom('', ' ', '\n', '\n  ', '\n\n    ', '\t', ' // note\n', ' /* a */ ', '\n  // "x": 1,\n  ')
const jsonValue: fc.Arbitrary<string> = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    word.map((text) => JSON.stringify(text)),
    fc.constantFrom('1', 'true', 'null', '[]', '[ 1, 2 ]'),
    tie('object'),
  ),
  object: objectOf(tie('value')),
})).object

function objectOf(value: fc.Arbitrary<string>, keys: fc.Arbitrary<string> = name): fc.Arbitrary<string> {
  const item = fc.record({ key: keys, value, blanks: fc.tuple(blank, blank, blank) })
  return fc
    .record({
      items: fc.uniqueArray(item, { selector: ({ key }) => key, maxLength: 4 }),
      end: blank,
      comma: fc.boolean(),
    })
    .map(({ items, end, comma }) => {
      const lines = items.map(({ key, value: text, blanks: [a, b, c] }) => `${a}"${key}":${b}${text}${c}`)
      return `{${lines.join(',')}${comma && lines.length > 0 ? ',' : ''}${end}}`
    })
}

const jsonFile = fc
  .record({
    servers: fc.option(
      objectOf(
        jsonValue,
        name.map((key) => `s${key}`),
      ),
      { nil: undefined },
    ),
    rest: objectOf(
      jsonValue,
      name.map((key) => `k${key}`),
    ),
    head: blank,
    tail: blank,
    end: eol,
    mark: fc.boolean(),
  })
  .map(({ servers, rest, head, tail, end, mark }) => {
    const body =
      servers === undefined
        ? rest
        : rest.replace(/^\{/, `{ "context_servers": ${servers}${!/"k/.test(rest) ? '' : ','}`)
    return (mark ? '\ufeff' : '') + (head + body + tail).replaceAll('\n', end)
  })
  .filter((text) => readable(zed, text))

const tomlFile = fc
  .record({
    tables: fc.uniqueArray(
      fc.record({
        key: name,
        note: fc.constantFrom('', ' # note'),
        value: fc.oneof(
          word.map((text) => JSON.stringify(text)),
          fc.constantFrom("'''\n[mcp_servers.fake]\n# x\n'''", '[\n  "[a]", # b\n]', '{ a = 1 }'),
        ),
        before: fc.constantFrom('', '\n', '# about\n', '\n\n# a\n\n# b\n'),
        server: fc.boolean(),
      }),
      { selector: ({ key }) => key, maxLength: 4 },
    ),
    head: fc.constantFrom('', '# Codex\n', 'model = "x"\n\n', '\n\n'),
    tail: fc.constantFrom('', '\n', '# the end', '\n\n'),
    end: eol,
  })
  .map(({ tables, head, tail, end }) => {
    const parts = tables.map(
      ({ key, note, value, before, server }) =>
        `${before}[${server ? 'mcp_servers.' : ''}t${key}]${note}\ncommand = ${value}\n`,
    )
    return (head + parts.join('') + tail).replaceAll('\n', end)
  })
  .filter((text) => readable(codex, text))

const yamlFile = fc
  .record({
    items: fc.uniqueArray(
      fc.record({
        key: name,
        value: fc.constantFrom(
          '1',
          '"a b"',
          '[a,   b]',
          '{ a: 1 }',
          '|\n@@line\n@@two',
          '>-\n@@x',
          '\n@@enabled: true # on\n@@type: builtin',
        ),
        note: fc.constantFrom('', '\n@# note', '\n'),
      }),
      { selector: ({ key }) => key, maxLength: 3 },
    ),
    head: fc.constantFrom('', '# goose\n', 'A: 1 # a\n', 'A:\n  b: 1\n\n'),
    tail: fc.constantFrom('', '\n', '\n# end\n', '\nZ: [1,  2]', '\nZ: |\n  text\n\n'),
    key: fc.constantFrom('extensions:', 'extensions: # mine', undefined),
    step: fc.constantFrom('  ', '    '),
    end: eol,
  })
  .map(({ items, head, tail, key, step, end }) => {
    const lines = items.map(({ key: item, value, note }) => `\n@s${item}: ${value}${note}`)
    const body =
      key === undefined ? '' : key + (lines.length === 0 ? ' {}'.slice(key.includes('#') ? 3 : 0) : lines.join(''))
    return (head + body + tail).replaceAll('@', step).replaceAll('\n', end)
  })
  .filter((text) => readable(goose, text))

function readable(host: Host, text: string): boolean {
  try {
    settingsEditorFor(host, 'f').parse(text.replace(/^\ufeff/, ''))
    return true
  } catch {
    return false
  }
}

async function add(host: Host, text: string) {
  const opened = await openWith(host, machine, text)
  const entry = host.entryOf(started, { name: 'hikidashi', scope: 'user', machine }, opened.settings)
  return { opened, entry, after: withEntry(opened, 'hikidashi', entry) }
}

/** What holds servers, with none in it: it is made where there is none, and it stays. */
const empty = /"context_servers":\{\}|extensions:((?:#mine)?(?:#end)?)(?:\{\})?/g

describe.each([
  ['JSON', zed, jsonFile],
  ['TOML', codex, tomlFile],
  ['YAML', goose, yamlFile],
])('a settings file in %s, of any form,', (_, host, file) => {
  test('keeps everything else, with its comments, when an entry is added and removed', () =>
    fc.assert(
      fc.asyncProperty(file, async (text) => {
        const { opened, entry, after } = await add(host, text)
        const again = await openWith(host, machine, after)
        expect(serversOf(again)).toEqual({ ...serversOf(opened), hikidashi: entry.value })
        const left = withoutEntry(again, 'hikidashi')
        const squeezed = (whole = '') =>
          whole
            .replace(/^\ufeff/, '')
            .replace(/[\s,]/g, '')
            .replace(empty, '$1')
            .replace(/^\{\}$/, '')
        expect(squeezed(left)).toBe(squeezed(text))
        const servers = serversOf(await openWith(host, machine, left))
        expect(servers).toEqual(serversOf(opened))
      }),
      { numRuns: volumeOf(25, 20) },
    ))
})

describe('an entry in a settings file', () => {
  const before = {
    json: '{\n  "context_servers": {\n    "a": 1,\n    "hikidashi": { "command": "x" }, // ours\n    "b": 2\n  }\n}\n',
    toml: '[mcp_servers.hikidashi]\ncommand = "x"\n\n[mcp_servers.hikidashi.env]\nA = "b"\n\n# next\n[other]\na = 1\n',
    yaml: 'extensions:\n  hikidashi:\n    cmd: x # ours\n  b: { type: stdio }\n',
    flow: 'extensions: { a: { type: x }, hikidashi: { cmd: y }, b: {} }\n',
  }
  test.each([
    ['json', zed, before.json, before.json.replace('    "hikidashi": { "command": "x" }, // ours\n', '     // ours\n')],
    ['toml', codex, before.toml, '\n\n# next\n[other]\na = 1\n'],
    ['yaml', goose, before.yaml, 'extensions:\n  b: { type: stdio }\n'],
    ['YAML in flow style', goose, before.flow, 'extensions: { a: { type: x }, b: {} }\n'],
  ])('in %s is removed or replaced without other changes', async (_, host, text, rest) => {
    const opened = await openWith(host, machine, text)
    expect(withoutEntry(opened, 'hikidashi')).toBe(rest)
    const entry = host.entryOf(started, { name: 'hikidashi', scope: 'user', machine }, opened.settings)
    const replaced = await openWith(host, machine, withEntry(opened, 'hikidashi', entry))
    expect(serversOf(replaced)).toEqual({ ...serversOf(opened), hikidashi: entry.value })
    expect(withEntry(replaced, 'hikidashi', entry)).toBe(replaced.before.text)
  })

  test.each([
    [zed, '{ "context_servers": [] }', 'cannot be edited safely'],
    [zed, '{ "context_servers": null }', 'cannot be edited safely'],
    [zed, '[]', ':1:1: this is not an object'],
    [zed, '{\n  "context_servers": {},\n  "context_servers": {}\n}', 'cannot be edited safely'],
    [zed, '{\n  "a": \n}', ':3:1: this is not JSON'],
    [gemini, '{ "a": 1', ':1:9: this is not JSON'],
    [codex, 'a = 1\nb = \n', ':2:'],
    [codex, 'mcp_servers = { a = { command = "x" } }\n', 'cannot be edited safely'],
    [codex, 'mcp_servers.a.command = "x"\nmcp_servers.hikidashi.command = "y"\n', 'cannot be edited safely'],
    [codex, '[[mcp_servers]]\na = 1\n', 'cannot be edited safely'],
    [goose, 'a: 1\n b: 2\n', ':1:4: this is not YAML'],
    [goose, '- a\n', 'cannot be edited safely'],
    [goose, 'a: 1\n---\nb: 1\n', ':2:1: this is not YAML'],
    [goose, 'extensions: [a]\n', 'cannot be edited safely'],
    [goose, 'base: &b\n  a: 1\nextensions: *b\n', 'cannot be edited safely'],
  ])('is not added or replaced in a file that cannot be edited safely (%#)', async (host, text, message) => {
    await expect(add(host, text)).rejects.toThrow(message)
  })
})
