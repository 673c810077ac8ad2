import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { main, picture, run, writeNotes } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'

let home = ''
let folder = ''
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'hikidashi-cli-'))
  folder = await writeNotes(home)
})
afterAll(() => rm(home, { recursive: true, force: true }))

const uri = (path: string) => `file://${folder}${path === '' ? '' : `/${path}`}`
/** A command, in this process; and one as users start it. */
const cli = (...args: readonly string[]) => runHere(args, { cwd: folder })
const started = (...args: readonly string[]) => run(args, { cwd: folder })

describe('the command line', () => {
  test('prints its version and its help', async () => {
    const version = await started('--version')
    expect(version).toMatchObject({ code: 0, err: '' })
    expect(version.out).toMatch(/^\d+\.\d+\.\d+\n$/)
    const help = await started('--help')
    expect(help).toMatchObject({ code: 0, err: '' })
    for (const command of [
      'serve',
      'ls',
      'read',
      'watch',
      'search',
      'status',
      'templates',
      'complete',
      'check',
      'init',
    ])
      expect(help.out).toContain(`  ${command}`)
    // The help of each command is looked at in test/unit/cli-commands.test.ts, without a process for it.
    const own = await started('serve', '--help')
    expect(own).toMatchObject({ code: 0, err: '' })
    expect(own.out).toMatch(/Examples:\n {2}hikidashi/)
    expect(own.out).toContain('Exit codes: 0')
  })

  // More of them are in test/unit/cli-wrong.test.ts, without a process for each.
  test.each([
    [[], ''],
    [['lss'], 'Did you mean ls?'],
    [['read'], "missing required argument 'uri'"],
  ])('with the wrong arguments %j exits with 2, and prints no stack trace', async (args, message) => {
    const { code, out, err } = await started(...args)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(message)
    expect(err).not.toMatch(/\n +at /)
  })
})

describe('hikidashi ls', () => {
  test('lists the mounts', async () => {
    expect(await started('ls')).toMatchObject({ code: 0, out: `${uri('')}\nsearch://notes\n`, err: '' })
    expect(await started('ls', '--only', 'files')).toMatchObject({ code: 0, out: `${uri('')}\n`, err: '' })
  })

  test.each(['docs', './docs/', 'file:docs', 'file:docs/'])('lists the children of %s', async (directory) => {
    const { code, out } = await cli(
      'ls',
      directory.replace(/^file:(.*)/, (_, path) => uri(path)),
    )
    expect(code).toBe(0)
    expect(out).toBe(['docs/deep/', 'docs/numbers.txt', 'docs/picture.png'].map((path) => `${uri(path)}\n`).join(''))
  })

  test.each([[[]], [['.']], [['docs']], [['docs/deep']]])(
    '--recursive lists every resource below %j',
    async (where) => {
      const { code, out } = await cli('ls', '-r', '--only', 'files', ...where)
      const all = ['README.md', 'docs/deep/%E6%97%A5%E6%9C%AC%20%E8%AA%9E.txt', 'docs/numbers.txt', 'docs/picture.png']
      const below = where[0] === undefined || where[0] === '.' ? '' : where[0]
      expect(code).toBe(0)
      expect(out).toBe(
        all
          .filter((path) => path.startsWith(below))
          .map((path) => `${uri(path)}\n`)
          .join(''),
      )
    },
  )

  test('--long shows sizes, times and types in columns', async () => {
    const { out } = await cli('ls', '-l', 'docs')
    const time = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/.source
    const [deep = '', numbers = '', picture = ''] = out.split('\n')
    expect(deep).toMatch(/^ *- {2}- +inode\/directory {2}file:/)
    expect(numbers).toMatch(new RegExp(`^292 B  ${time}  text/plain +file:.*/numbers\\.txt$`))
    expect(picture).toMatch(new RegExp(`^ 16 B  ${time}  image/png +file:`))
    expect(new Set([deep, numbers, picture].map((line) => line.indexOf('file:'))).size).toBe(1)
  })

  test('--json shows the URI, name, type, size and time of each entry exactly', async () => {
    const { out } = await cli('ls', '--json', 'docs')
    const [deep, numbers] = JSON.parse(out)
    expect(deep).toEqual({ uri: uri('docs/deep/'), name: 'deep', mimeType: 'inode/directory' })
    expect(numbers).toMatchObject({
      uri: uri('docs/numbers.txt'),
      name: 'numbers.txt',
      mimeType: 'text/plain',
      size: 292,
    })
    expect(numbers.modified).toBe(new Date(numbers.modified).toISOString())
    expect(JSON.parse((await cli('ls', '--json', '-r')).out)).toHaveLength(5)
  })

  test.each([
    [['ls', 'nope'], 4],
    [['ls', '-r', 'nope'], 4],
    [['ls', 'file:///nope'], 4],
    [['ls', 'README.md'], 2],
  ])('with the arguments %j exits with %i and names the wrong one', async (args, code) => {
    const result = await cli(...args)
    expect(result).toMatchObject({ code, out: '' })
    expect(result.err).toMatch(/file:\/\/\/.*(nope|README\.md)/)
  })

  test('escapes control characters in URIs and titles', async () => {
    const server = join(home, 'rude.mjs')
    await writeFile(server, rudeServer)
    const { code, out } = await cli('ls', '-l', '-r', '--command', `${process.execPath} ${server}`)
    expect(code).toBe(0)
    expect(out).toContain('x\\u001b]0;owned\\u0007y')
    expect(out).toContain('gpj.\\u202eexe')
    for (const character of ['\u001b', '\u0007', '\u202e']) expect(out).not.toContain(character)
  })
})

describe('hikidashi read', () => {
  test('prints a text unchanged, by its path and by its URI', async () => {
    const out = await readFile(join(folder, 'docs/numbers.txt'), 'utf8')
    expect(await cli('read', 'docs/numbers.txt')).toMatchObject({ code: 0, out, err: '' })
    expect(await cli('read', uri('docs/numbers.txt'))).toMatchObject({ code: 0, out, err: '' })
  })

  test('prints bytes unchanged, to stdout or a file', async () => {
    const execute = promisify(execFile)
    const { stdout } = await execute(process.execPath, [main, 'read', 'docs/picture.png'], {
      cwd: folder,
      encoding: 'buffer',
    })
    expect(stdout).toEqual(picture)
    const file = join(home, 'copy.png')
    expect(await cli('read', 'docs/picture.png', '--output', file)).toMatchObject({ code: 0, out: '', err: '' })
    expect(await readFile(file)).toEqual(picture)
  })

  test('adds no line end to a text that has none', async () => {
    expect((await cli('read', 'docs/deep/日本 語.txt')).out).toBe('こんにちは')
  })

  test('prints a range of lines or bytes', async () => {
    expect((await cli('read', 'docs/numbers.txt', '--lines', '10-12')).out).toBe('10\n11\n12\n')
    expect((await cli('read', 'docs/numbers.txt', '--bytes', '0-3')).out).toBe('1\n2\n')
    expect((await cli('read', `${uri('docs/numbers.txt')}?lines=100-`)).out).toBe('100\n')
  })

  test('prints the last lines of a text, and a document as text or Markdown', async () => {
    expect((await cli('read', 'docs/numbers.txt', '--tail', '2')).out).toBe('99\n100\n')
    expect((await cli('read', 'docs/numbers.txt', '--tail', '0')).code).toBe(2)
    expect((await cli('read', 'docs/numbers.txt', '--tail', '1', '--lines', '1')).code).toBe(2)
    await writeFile(join(folder, 'page.html'), '<h1>Drawer</h1><p>of <b>cedar</b></p>')
    expect((await cli('read', 'page.html', '--as', 'text')).out).toBe('Drawer\n\nof cedar\n')
    expect((await cli('read', 'page.html', '--as', 'markdown')).out).toMatch(/^# Drawer\n/)
    expect((await cli('read', 'page.html', '--as', 'markdown', '--lines', '1')).out).toBe('# Drawer\n')
    await rm(join(folder, 'page.html'))
  })

  test('prints the listing of a directory that is given as a path, with or without a slash, or as a URI with a slash', async () => {
    for (const what of ['docs', 'docs/', uri('docs/')])
      expect((await cli('read', what)).out).toMatch(/^deep\/ {2}directory\nnumbers\.txt {2}292 bytes/)
  })

  test('prints all contents of a directory URI without a slash, and on stderr a heading for each if there are several', async () => {
    const { code, out, err } = await cli('read', uri('docs/deep'))
    expect({ code, out }).toEqual({ code: 0, out: 'こんにちは' })
    expect(err).toBe('')
    const several = await cli('read', uri('docs'))
    expect(several.err.split('\n').filter((line) => line.startsWith('──'))).toHaveLength(3)
    expect(several.out).toContain('1\n2\n3\n')
  })

  test('--json prints contents with URI, name and type, and bytes in base64', async () => {
    const text = JSON.parse((await cli('read', '--json', 'README.md')).out)
    expect(text).toMatchObject({
      uri: uri('README.md'),
      contents: [{ uri: uri('README.md'), name: 'README.md', mimeType: 'text/markdown', text: '# Notes\n' }],
    })
    const bytes = JSON.parse((await cli('read', '--json', 'docs/picture.png')).out)
    expect(bytes.contents[0].blob).toBe(picture.toString('base64'))
  })

  test('exits with 4 if there is no resource', async () => {
    const { code, out, err } = await started('read', 'docs/nope.txt')
    expect({ code, out }).toEqual({ code: 4, out: '' })
    expect(err).toContain(uri('docs/nope.txt'))
  })

  test('says how to read a part of a resource that is too large for --json', async () => {
    await writeFile(
      join(home, 'small.json'),
      JSON.stringify({ mounts: { 'x://a': { provider: 'files', root: 'notes', maxBytes: 100 } } }),
    )
    const asked = ['read', 'x://a/docs/numbers.txt', '--config', join(home, 'small.json')]
    const { code, err } = await cli(...asked, '--json')
    expect(code).toBe(1)
    expect(err).toContain('--lines 1-200')
    expect(err).toContain('--output FILE')
  })

  test('writes a resource that is larger than the limit of its mount to a pipe or a file completely', async () => {
    const large = 'a line of text, and another one\n'.repeat(80_000)
    await mkdir(join(home, 'large'))
    await writeFile(join(home, 'large/lines.txt'), large)
    const mounts = { 'x://a': { provider: 'files', root: 'large', maxBytes: '1MiB' } }
    await writeFile(join(home, 'large.json'), JSON.stringify({ mounts }))
    const asked = ['read', 'x://a/lines.txt', '--config', join(home, 'large.json')]
    const piped = await cli(...asked)
    expect([piped.code, piped.out === large]).toEqual([0, true])
    const file = join(home, 'all.txt')
    expect(await cli(...asked, '-o', file)).toMatchObject({ code: 0, out: '' })
    expect((await readFile(file, 'utf8')) === large).toBe(true)
  })

  test('reports that the output file cannot be written', async () => {
    const { code, err } = await cli('read', 'README.md', '-o', join(home, 'nope', 'x'))
    expect(code).toBe(1)
    expect(err).toContain('cannot be written')
  })
})

test.each([
  [['ls', 'docs/'], /numbers\.txt\n/],
  [['tree', 'docs', '--json'], /^\[\n?/],
  [['stat', 'README.md'], /README\.md/],
  [['templates'], /file:/],
  [['check'], /^ok /],
  [['hosts'], /./],
] as const)(
  'hikidashi %j with -o writes its output to a file, or reports that the file cannot be written',
  async (words, pattern) => {
    const file = join(home, 'printed.txt')
    const { code, out } = await cli(...words, '-o', file)
    expect({ code, out }).toEqual({ code: 0, out: '' })
    expect(await readFile(file, 'utf8')).toMatch(pattern)
    const away = await cli(...words, '-o', join(home, 'none/printed.txt'))
    expect(away).toMatchObject({ code: 1, out: '' })
    expect(away.err).toContain('cannot be written')
  },
)

describe('hikidashi templates and complete', () => {
  test('print the templates, and values for their variables', async () => {
    const { code, out } = await cli('templates')
    expect(code).toBe(0)
    expect(out).toContain(`${uri('{+path}')} `)
    const templates = JSON.parse((await cli('templates', '--json')).out)
    expect(templates).toContainEqual(expect.objectContaining({ uriTemplate: uri('{+path}{?as,lines,bytes}') }))
    expect((await cli('complete', uri('{+path}'), 'path', 'docs/')).out).toBe(
      'docs/deep/\ndocs/numbers.txt\ndocs/picture.png\n',
    )
    const completion = JSON.parse((await cli('complete', uri('{+path}'), 'path', 'RE', '--json')).out)
    expect(completion).toMatchObject({ values: ['README.md'], hasMore: false })
    expect(await cli('complete', uri('{+path}'), 'pth', 'RE')).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('The template has no variable pth. It has: path.'),
    })
    expect(await cli('complete', 'x://{y}', 'y')).toMatchObject({ code: 2, out: '' })
  })
})

describe('hikidashi check', () => {
  test('prints a line for each mount of a sound folder, and exits with 0', async () => {
    const { code, out, err } = await cli('check')
    expect({ code, out }).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        /^ok {5}file:.* {2}files {2}4 entries looked at {2}\d+ ms\nok {5}search:.* {2}search {2}1 entry looked at {2}\d+ ms\n$/,
      ),
    })
    expect(err).toBe('The current folder: 2 mounts, nothing wrong.\n')
  })

  test('reports every problem of a configuration, as text and as JSON', async () => {
    const file = join(home, 'bad.json')
    await writeFile(file, '{ "mounts": {\n  "file:///a": { "provider": "files", "root": "nope", "exlude": [] }\n} }')
    const text = await cli('check', '--config', file)
    expect(text.code).toBe(1)
    expect(text.out.split('\n')).toEqual([
      expect.stringMatching(/bad\.json:2:47: mounts\["file:\/\/\/a"\]\.root: There is no folder .*nope\. Create it/),
      expect.stringMatching(/bad\.json:2:55: .*exlude: This key is unknown\. Did you mean "exclude"\?/),
      '',
    ])
    expect(text.err).toContain('2 problems')
    const json = await cli('check', '--json', '--config', file)
    expect(json.code).toBe(1)
    expect(JSON.parse(json.out)).toMatchObject({
      file,
      ok: false,
      problems: [
        {
          file,
          line: 2,
          column: 47,
          key: 'mounts["file:///a"].root',
          message: expect.any(String),
          fix: expect.any(String),
        },
        {},
      ],
      mounts: [],
    })
  })

  test('reports an address that is served in another spelling, and refuses two spellings of one address', async () => {
    const file = join(home, 'capitals.json')
    const mount = { provider: 'files', root: 'notes' }
    await writeFile(file, JSON.stringify({ mounts: { 'Docs://Manual/A': mount, 'x://a': mount } }))
    const { code, err } = await cli('check', '--config', file)
    expect(code).toBe(0)
    expect(err).toContain('Docs://Manual/A is served as docs://manual/A')
    expect(err).not.toContain('x://a is served')
    expect(err).not.toContain('no client sees')
    const seen = JSON.parse((await cli('check', '--json', '--config', file)).out)
    expect(seen.respelled).toEqual([{ address: 'Docs://Manual/A', served: 'docs://manual/A' }])
    await writeFile(file, JSON.stringify({ mounts: { 'x://A': mount, 'X://a': mount } }))
    const same = await cli('check', '--config', file)
    expect(same.code).toBe(1)
    expect(same.out).toContain('The address overlaps with "x://A": both are x://a.')
  })

  test('reports a mount that no client can see, unless the configuration gives the role', async () => {
    const file = join(home, 'hidden.json')
    const mount = { provider: 'files', root: 'notes', access: ['analyst'] }
    await writeFile(file, JSON.stringify({ mounts: { 'x://a': mount } }))
    const { code, err } = await cli('check', '--config', file)
    expect(code).toBe(0)
    expect(err).toContain('no client sees x://a')
    await writeFile(file, JSON.stringify({ mounts: { 'x://a': mount }, roles: ['analyst'] }))
    const seen = JSON.parse((await cli('check', '--json', '--config', file)).out)
    expect(seen).toMatchObject({
      ok: true,
      file,
      hidden: [],
      mounts: [{ address: 'x://a', provider: 'files', examined: 4, complete: true, problems: [] }],
    })
  })
})

test('hikidashi doctor exits with 0 for a sound folder, and no check fails', async () => {
  const { code, out } = await cli('doctor')
  expect({ code, out }).toMatchObject({ code: 0, out: expect.stringMatching(/ok {6}store/) })
  expect(out).not.toContain('FAILED')
})

describe('hikidashi init', () => {
  test('writes a configuration that check accepts, and overwrites an existing one only with --force', async () => {
    const target = join(home, 'fresh')
    await mkdir(join(target, 'docs'), { recursive: true })
    await writeFile(join(target, 'README.md'), '# Fresh\n')
    const here = { cwd: target, env: { XDG_STATE_HOME: join(home, 'state') } }
    const printed = await run(['init', '--stdout'], here)
    expect(printed).toMatchObject({ code: 0, err: '' })
    const written = await run(['init'], here)
    expect(written).toMatchObject({ code: 0, out: '' })
    expect(written.err).toContain('hikidashi.json')
    expect(await readFile(join(target, 'hikidashi.json'), 'utf8')).toBe(printed.out)
    expect(await runHere(['check'], here)).toMatchObject({ code: 0 })
    expect((await runHere(['ls'], here)).out).toBe('file:///fresh\nsearch://fresh\n')
    expect((await runHere(['read', 'README.md'], here)).out).toBe('# Fresh\n')

    await writeFile(join(target, 'hikidashi.json'), 'mine')
    const again = await runHere(['init'], here)
    expect(again).toMatchObject({ code: 1, out: '' })
    expect(again.err).toContain('--force')
    expect(await readFile(join(target, 'hikidashi.json'), 'utf8')).toBe('mine')
    const forced = await run(['init', '--force', '--json'], here)
    expect(JSON.parse(forced.out)).toEqual({
      file: join(target, 'hikidashi.json'),
      mounts: ['file:///fresh', 'search://fresh'],
    })
    expect(await readFile(join(target, 'hikidashi.json'), 'utf8')).toBe(printed.out)
  })

  test('writes mounts for the files, git history, settings, variables and search index of a project', async () => {
    const target = join(home, 'project')
    await mkdir(join(target, 'docs', 'ja'), { recursive: true })
    await mkdir(join(target, 'docs', 'en'))
    const here = { cwd: target, env: { XDG_STATE_HOME: join(home, 'state') } }
    await promisify(execFile)('git', ['init', '--quiet'], here)
    await writeFile(join(target, '.env'), 'TOKEN=hunter2\n')
    await writeFile(join(target, 'package.json'), '{ "name": "project" }')
    await writeFile(join(target, 'docs', 'en', 'guide.md'), '---\ntitle: The guide\n---\n')
    // 「設定ファイルを変更した後は、必ずサービスを再起動してください。」, in Shift_JIS.
    const sentence = 'kN2S6IN0g0CDQ4OLgvCVz41YgrWCvYzjgs2BQZVLgriDVIFbg3KDWILwjcSLTpOugrWCxIKtgr6Cs4KigUI='
    await writeFile(join(target, 'docs', 'ja', 'guide.md'), Buffer.from(sentence, 'base64'))
    const { out } = await runHere(['init', '--json'], here)
    expect(JSON.parse(out)).toMatchObject({
      mounts: ['file:///project', 'git://project', 'config://project', 'env://project', 'search://project'],
    })
    expect(await runHere(['check'], here)).toMatchObject({ code: 0 })
    expect((await runHere(['read', 'config://project/.env'], here)).out).toBe('TOKEN=[redacted]\n')
    expect((await runHere(['read', 'env://project/TOKEN'], here)).out).toBe('[redacted]')
    expect((await runHere(['ls', '-l', 'docs/en'], here)).out).toContain('The guide')
    expect((await runHere(['init', '--stdout'], here)).out).toMatch(/^ +"language": "ja",$/m)
  })

  test('prints a command in which the path of a folder with spaces and quotes in its name is quoted for a shell', async () => {
    const target = join(home, "two words 'ja'")
    await mkdir(target)
    const { err } = await runHere(['init'], { cwd: target })
    expect(err).toContain(`hikidashi check --config '${join(home, "two words '\\''ja'\\''", 'hikidashi.json')}'\n`)
  })

  test('reports that the folder does not exist', async () => {
    expect(await cli('init', 'nope')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('does not exist'),
    })
  })
})

/** A server whose names and titles are made to harm a terminal. */
const rudeServer = `
import { createInterface } from 'node:readline'
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) continue
  const answer = (result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, ...result }))
  if (method === 'initialize')
    answer({ result: { protocolVersion: params.protocolVersion, capabilities: { resources: {} }, serverInfo: { name: 'rude', version: '1' } } })
  else if (method === 'resources/list')
    answer({ result: { resources: [{ uri: 'rude://x/gpj.\\u202eexe', name: 'a', title: 'x\\u001b]0;owned\\u0007y' }] } })
  else answer({ error: { code: -32601, message: 'no' } })
}
`
