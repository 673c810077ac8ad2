import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { isResourceError } from '../../src/core/errors.ts'
import { createCatalog, type Provider } from '../../src/index.ts'
import { git } from '../../src/providers/git/index.ts'
import { serveHttp, serveStdio } from '../../src/server/index.ts'
import { docx, p, relationships } from '../fixtures/documents/office.ts'
import { zip } from '../fixtures/documents/zip.ts'
import { context, createGitFolder } from '../support/git.ts'
import { hasTurn } from '../support/volume.ts'
import { useArena } from './harness/arena.ts'
import { jsonHeaders, modernHeaders } from './harness/http.ts'
import { startConfigured } from './harness/target.ts'
import { type Answer, type Message, type Wire, withMeta } from './harness/wire.ts'
import type { World } from './harness/world.ts'

const times = <T>(count: number, make: (i: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, i) => make(i))

/** Each anchor names the one before it nine times. */
const laughs = (levels: number, item: (before: string) => string) =>
  ['a0: &a0 {k: v}\n', ...times(levels, (i) => `a${i + 1}: &a${i + 1} ${item(`*a${i}`)}\n`)].join('')

const nine = (text: string) => times(9, () => text).join(', ')

/** Settings files that exhaust naive parsers, by the expected outcome: an error, or an answer. */
const settingsBombs: Readonly<
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
const tagged = {
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
const textBombs: Readonly<Record<string, string>> = {
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
const binaryBombs: Readonly<Record<string, Uint8Array>> = {
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
function plantBombs(world: World): { readonly settings: string } {
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

// What is small where it lies and large where it is read. The built command line serves all of it; the arena looks after
// whether it still answers others meanwhile, and lets go of what it took.

const planted = new WeakMap<World, ReturnType<typeof plantBombs>>()

/** The processes are started one beside the other: the bombs are there once. */
function bombsIn(world: World): ReturnType<typeof plantBombs> {
  const found = planted.get(world) ?? plantBombs(world)
  planted.set(world, found)
  return found
}

const arena = useArena(
  {},
  (world, { transport }) => {
    const { settings } = bombsIn(world)
    return startConfigured(world, transport, {
      mounts: {
        [world.address]: {
          provider: 'files',
          root: world.root,
          frontMatter: ['bombs/*.md'],
          readings: { maxBytes: '2MiB' },
        },
        // A machine that is busy is not what is tested.
        'config://bombs': { provider: 'settings', root: settings, timeout: '25s' },
      },
    })
  },
  // A worker for each kind of reading, and what parsers leave to the collector of garbage.
  { slack: { descriptors: 64, threads: 24, resident: 900 } },
)

/** Each bomb once over each transport. */
const two = (): readonly Wire[] => [arena.wire('stdio 2025-11-25'), arena.wire('http 2026-07-28')]

interface Part {
  readonly uri: string
  readonly text?: string
  readonly blob?: string
}

const partOf = ({ message, raw }: Answer): Part => {
  const [part] = (message?.result?.contents ?? []) as readonly Part[]
  expect(part, raw.subarray(0, 400).toString()).toBeDefined()
  return part as Part
}

const inBombs = (name: string) => `${arena.world.address}/bombs/${name}`

describe('hostile settings files', () => {
  test('are answered with less than 5 MB, or refused with the place of the error or the limit (BM01, BM02, BM04, BM06, BM17)', async () => {
    const ways = ['', '?pointer=/a', '?as=json']
    for (const [wire, queries] of [
      [arena.wire('stdio 2025-11-25'), ['', '?pointer=/a']],
      [arena.wire('http 2026-07-28'), ['?as=json']],
    ] as const)
      for (const [bomb, [name, { row, ends }]] of Object.entries(settingsBombs).entries())
        for (const query of queries) {
          // In a tenth of the volume each in one of these ways, in turn.
          if (!hasTurn(bomb, ways.indexOf(query), ways.length)) continue
          const answer = await arena.read(wire, `config://bombs/${name}${query}`)
          const { error } = answer.message ?? {}
          const what = `${row} ${name}${query} over ${wire.name}: ${answer.raw.subarray(0, 300)}`
          if (ends === 'fine') expect(error === undefined || query === '?pointer=/a', what).toBe(true)
          else {
            expect(error, what).toMatchObject({ code: -32602 })
            expect(error?.message, what).toMatch(
              /^(?:The file cannot be read as \w+\. Line \d+, column \d+: |The file has more than)/,
            )
          }
          expect(answer.raw.length, what).toBeLessThan(5_000_000)
        }
  })

  test('get an answer of less than 4 MB if aliases repeat a node, or are refused (BM01)', async () => {
    for (const wire of two()) {
      const { message, raw } = await arena.read(wire, 'config://bombs/shared.yaml?as=json')
      expect(message?.result === undefined ? 0 : raw.length).toBeLessThan(4_000_000)
    }
  })

  test('have the values of YAML 1.2, with tags ignored and __proto__ as an ordinary name (BM03, BM04)', async () => {
    for (const wire of two()) {
      expect(partOf(await arena.read(wire, 'config://bombs/tagged.yaml')).text).toBe(tagged.text)
      expect(partOf(await arena.read(wire, 'config://bombs/tagged.yaml?as=json')).text).toBe(tagged.json)
      expect(partOf(await arena.read(wire, 'config://bombs/tagged.yaml?pointer=/__proto__/polluted')).text).toBe('1\n')
      const { message } = await arena.read(wire, 'config://bombs/tagged.yaml?pointer=/toString')
      expect(message?.error).toBeDefined()
    }
  })

  test('give at most a hundred values to a completion (BM02, BM06)', async () => {
    for (const name of Object.keys(settingsBombs)) {
      const { message } = await arena.ask(arena.wire('http 2026-07-28'), 'completion/complete', {
        ref: { type: 'ref/resource', uri: 'config://bombs/{+path}{?pointer,as}' },
        argument: { name: 'pointer', value: '/' },
        context: { arguments: { path: name } },
      })
      const { values = [] } = (message?.result?.completion ?? {}) as { readonly values?: readonly string[] }
      expect(values.length).toBeLessThanOrEqual(100)
    }
  })
})

describe('JSON messages:', () => {
  test('a message with 60,000 names whose hashes collide is answered (BM06)', async () => {
    for (const wire of two()) {
      const many = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`${i * 65_536}`, 0]))
      const { message, raw } = await arena.ask(wire, 'resources/templates/list', { many })
      expect(message?.result?.resourceTemplates, raw.subarray(0, 300).toString()).toBeDefined()
    }
  })

  test('metadata of a resource that is nested too deeply gives an error with the id of the request, and another request is answered (BM07)', async () => {
    let meta: unknown = 'bottom'
    for (let i = 0; i < 50_000; i++) meta = [meta]
    const deep: Provider = {
      list: async function* () {},
      read: async ({ path }) => [{ text: path, ...(path === 'deep' ? { meta: { meta } } : {}) }],
    }
    const log = () => {}
    const catalog = createCatalog({ mounts: [{ address: 'deep://source', provider: deep }], log })
    const options = { name: 'deep', version: '0', view: catalog.view, log }
    const request = (path: string) => {
      const params = { uri: `deep://source/${path}` }
      return { jsonrpc: '2.0', id: path, method: 'resources/read', params: withMeta(params, true) }
    }
    const expected = { jsonrpc: '2.0', id: 'deep', error: { code: -32603, message: 'Internal error' } }

    const [input, output] = [new PassThrough(), new PassThrough()]
    const serving = serveStdio({ ...options, input, output })
    for (const path of ['deep', 'plain']) input.write(`${JSON.stringify(request(path))}\n`)
    input.end()
    await serving
    output.end()
    const lines = (await output.toArray())
      .join('')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Message)
    expect(lines.find(({ id }) => id === 'deep')).toEqual(expected)
    expect(lines.find(({ id }) => id === 'plain')?.result).toBeDefined()

    const service = await serveHttp({ ...options, host: '127.0.0.1', port: 0 })
    const post = async (path: string) => {
      const { params, method, ...rest } = request(path)
      const headers = { ...jsonHeaders, ...modernHeaders(method, params) }
      const response = await fetch(service.url, {
        method: 'POST',
        headers,
        body: JSON.stringify({ ...rest, method, params }),
      })
      return (await response.json()) as Message
    }
    expect(await post('deep')).toEqual(expected)
    expect((await post('plain')).result).toBeDefined()
    await service.close()
    await catalog.close()
  })
})

describe('files that expand when they are decoded:', () => {
  test('a bomb in a Word document is served as bytes, and refused as text without the contents of files that it names (BM08, BM09, BM16)', async () => {
    for (const wire of two()) {
      for (const name of ['bomb.docx', 'entities.docx']) {
        expect(
          Buffer.from(partOf(await arena.read(wire, inBombs(name))).blob ?? '', 'base64')
            .subarray(0, 2)
            .toString(),
        ).toBe('PK')
        const { message, raw } = await arena.read(wire, `${inBombs(name)}?as=text`)
        expect(message?.error?.code, raw.subarray(0, 300).toString()).toBe(-32602)
        expect(raw.toString()).not.toContain('root:')
      }
    }
  })

  test('a file whose base64 exceeds the message limit of stdio is refused over stdio as too large, but a range of its bytes is served, and over HTTP the whole file (BM11)', async () => {
    // The schema's own check of base64 runs out of stack with so much of it.
    const read = async (wire: Wire, query: string) => wire.call('resources/read', { uri: inBombs('blob.dat') + query })
    const stdio = arena.wire('stdio 2026-07-28')
    const over = await read(stdio, '')
    expect(over.message?.error).toMatchObject({ code: -32602, data: { reason: 'too-large' } })
    const part = partOf(await read(stdio, '?bytes=0-1048575'))
    expect(Buffer.from(part.blob ?? '', 'base64').length).toBe(1_048_576)
    const whole = partOf(await read(arena.wire('http 2026-07-28'), ''))
    expect(Buffer.from(whole.blob ?? '', 'base64').length).toBe(8_000_000)
  })

  test('an image that would be huge when decoded is served unchanged (BM12)', async () => {
    for (const wire of two())
      for (const name of ['large.png', 'frames.gif']) {
        const { blob = '' } = partOf(await arena.read(wire, inBombs(name)))
        expect(Buffer.from(blob, 'base64').equals(binaryBombs[name] ?? expect.fail())).toBe(true)
      }
  })

  test('Markdown and CSV that are slow to parse are served unchanged, and a range of lines is served or refused as invalid (BM13, BM14, BM17)', async () => {
    const wire = arena.wire('http 2025-11-25')
    for (const [name, text] of Object.entries(textBombs)) {
      const part = partOf(await arena.read(wire, inBombs(name)))
      // A zero byte makes it no text, and not another one.
      expect(part.text ?? Buffer.from(part.blob ?? '', 'base64').toString()).toBe(text)
      const { message, raw } = await arena.read(wire, `${inBombs(name)}?lines=1-2`)
      expect(message?.error?.code ?? -32602, raw.subarray(0, 300).toString()).toBe(-32602)
    }
  })

  test('titles from Markdown and CSV have at most 200 characters in lists (BM13, BM17)', async () => {
    for (const wire of two()) {
      const { message } = await arena.ask(wire, 'resources/directory/read', { uri: `${arena.world.address}/bombs` })
      const resources = (message?.result?.resources ?? []) as readonly {
        readonly uri: string
        readonly title?: string
      }[]
      for (const name of Object.keys(textBombs)) expect(resources.map(({ uri }) => uri)).toContain(inBombs(name))
      for (const { title = '' } of resources) expect(Array.from(title).length).toBeLessThanOrEqual(200)
    }
  })
})

describe('git histories:', () => {
  test('a diff, a commit, a blame and a log of unrelated texts of ten megabytes have less than 16 MiB, or are refused as too large (BM18)', async () => {
    const folder = createGitFolder()
    const repository = folder.repository('repository')
    const lines = () => (randomBytes(5_000_000).toString('hex').match(/.{40}/g) ?? []).join('\n')
    for (const tag of ['one', 'two']) {
      repository.write('lines.txt', lines())
      repository.commit(tag)
      repository.git('tag', tag)
    }
    const provider = await git({ repository: repository.dir })
    const outcome = async (path: string) => {
      try {
        const [content] = await provider.read({ path, params: new Map() }, context())
        return content !== undefined && 'text' in content ? content.text.length : 0
      } catch (error) {
        if (isResourceError(error, 'too-large')) return 0
        throw error
      }
    }
    for (const path of ['diff/one/two', 'commits/two', 'blame/two/lines.txt', 'log'])
      expect(await outcome(path), path).toBeLessThan(16 * 1024 * 1024)
    await provider.close?.()
    folder.dispose()
  })
})
