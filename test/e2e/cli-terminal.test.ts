import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { joinCommand } from '../../src/cli/operations/command-line.ts'
import { findProgram } from '../../src/providers/program.ts'
import { main, run, start, writeNotes } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'
import { requires } from '../support/require.ts'

const execute = promisify(execFile)
const script = process.platform === 'linux' ? await findProgram('script') : undefined

let home = ''
let folder = ''
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'hikidashi-terminal-'))
  folder = await writeNotes(home)
})
afterAll(() => rm(home, { recursive: true, force: true }))

/** What a person sees: everything that is written to a terminal, and what the command ends with. */
async function onTerminal(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { NO_COLOR: _, FORCE_COLOR: __, ...rest } = process.env
  const line = joinCommand([process.execPath, main, ...args])
  const options = { cwd: folder, env: { ...rest, TERM: 'xterm', ...env }, encoding: 'utf8' } as const
  const { stdout, code } = await execute(script ?? '', ['-qec', line, '/dev/null'], options).then(
    (done) => ({ ...done, code: 0 }),
    (error: { stdout: string; code: number }) => error,
  )
  return { seen: stdout.replaceAll('\r\n', '\n'), code }
}

/** A server that takes its time to say hello. */
const slow = `
import { createInterface } from 'node:readline'
const results = {
  initialize: { protocolVersion: '2025-06-18', capabilities: { resources: {} }, serverInfo: { name: 'slow', version: '1' } },
  'resources/list': { resources: [{ uri: 'x://slow/a', name: 'a' }] },
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (id === undefined) return
  const result = results[method]
  const answer = result === undefined ? { error: { code: -32601, message: 'no' } } : { result }
  const wait = method === 'initialize' ? 1500 : 0
  setTimeout(() => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...answer }) + '\\n'), wait)
})
`

requires(
  'script',
  script !== undefined,
  'there is no script of util-linux',
)('on the command line,', () => {
  test('in a terminal, headings are bold, and errors are red', async () => {
    const tree = await onTerminal(['tree', '--depth', '1', '--only', 'files'])
    expect(tree).toEqual({
      code: 0,
      seen: `\u001b[1mfile://${folder}\u001b[22m\n├── README.md\n└── \u001b[1mdocs/\u001b[22m\n\n1 directory, 1 resource\n`,
    })
    const wrong = await onTerminal(['read', 'REDME.md'])
    expect(wrong.code).toBe(4)
    expect(wrong.seen.startsWith('\u001b[31mhikidashi:\u001b[39m ')).toBe(true)
    expect(wrong.seen).toMatch(/Did you mean .*\/README\.md \?\n$/)
    const help = await onTerminal(['tree', '--help'])
    for (const heading of ['Usage:', 'Options:', 'Examples:', 'Exit codes:'])
      expect(help.seen).toContain(`\u001b[1m${heading}\u001b[22m`)
  })

  test.each<Readonly<Record<string, string>>>([{ NO_COLOR: '1' }, { TERM: 'dumb' }, { FORCE_COLOR: '0' }])(
    'output has no colours with %j',
    async (env) => {
      const { seen } = await onTerminal(['doctor', '--limit', '5'], env)
      expect(seen).toMatch(/^ok {6}node/)
      // A line that is written over is no colour.
      const escapes = seen.split('\u001b').slice(1)
      expect(escapes.filter((code) => !code.startsWith('[K'))).toEqual([])
      if (env.TERM === 'dumb') expect(escapes).toEqual([])
    },
  )

  test('progress is shown while a server connects slowly, and erased at the end', async () => {
    const server = join(home, 'slow.mjs')
    await writeFile(server, slow)
    const { seen, code } = await onTerminal(['ls', '-r', '--command', joinCommand([process.execPath, server])])
    expect(code).toBe(0)
    const [told = '', listed] = seen.split('\r\u001b[K')
    expect(told).toMatch(/^\r. Connecting …/)
    expect(listed).toBe('x://slow/a\n')
  })

  test('hikidashi without a command exits with 2 and prints how to begin', async () => {
    const { seen, code } = await onTerminal([])
    expect(code).toBe(2)
    expect(seen).toContain('To begin:')
    expect(seen).toContain('hikidashi --help')
  })
})

test('a pipe gets no colours and no progress, unless FORCE_COLOR requests colours; messages to the user do not go to stdout', async () => {
  const plain = await run(['tree', '--depth', '1'], { cwd: folder, env: { NO_COLOR: '', FORCE_COLOR: '0' } })
  expect(plain).toMatchObject({ code: 0, err: '' })
  expect(plain.out).not.toContain('\u001b')
  const forced = await run(['tree', '--depth', '1'], { cwd: folder, env: { FORCE_COLOR: '1' } })
  expect(forced.out).toContain('\u001b[1mdocs/')
  const nothing = await run([], { cwd: folder })
  expect(nothing).toMatchObject({ code: 2, out: '' })
  expect(nothing.err).toContain('A host starts: hikidashi serve')
  const meant = await runHere(['cat', 'README.md'], { cwd: folder })
  expect(meant).toMatchObject({ code: 2, out: '' })
  expect(meant.err).toContain('Did you mean read?')
})

test('doctor --json reports every check of a sound server as ok, and doctor reports a server that does not answer', async () => {
  const serving = start(['serve', '.', '--http', '0'], { cwd: folder })
  const [, url = ''] = await serving.says(/ at (http:\S+)/)
  try {
    const good = await runHere(['doctor', '--json', '--url', url], { cwd: folder })
    expect(good).toMatchObject({ code: 0, err: '' })
    const { ok, checks } = JSON.parse(good.out) as { ok: boolean; checks: { check: string; status: string }[] }
    expect(ok).toBe(true)
    expect(checks.filter(({ status }) => status !== 'ok')).toEqual([])
    const names = [
      'node',
      'clock',
      'connect',
      'capabilities',
      'list',
      'templates',
      'read',
      'subscribe',
      'unknown',
      'guard',
    ]
    expect(checks.map(({ check }) => check)).toEqual(names)
  } finally {
    serving.child.kill('SIGTERM')
    await serving.ended
  }
  const gone = await runHere(['doctor', '--url', url], { cwd: folder })
  expect(gone.code).toBe(1)
  expect(gone.out).toMatch(/^FAILED {2}connect .*ECONNREFUSED.*\n +-> Start the server/m)
  expect(gone.err).toContain('1 check of 3 failed')
})

const bash = await findProgram('bash')
requires(
  'bash',
  bash !== undefined,
  'there is no bash',
)('on the command line,', () => {
  test('the Tab key completes a word', async () => {
    const { stdout: completion } = await execute(process.execPath, [main, 'completion', 'bash'], { encoding: 'utf8' })
    const own = `hikidashi() { ${joinCommand([process.execPath, main])} "$@"; }`
    const ask = (line: string, word: string) =>
      `COMP_LINE='${line}'; COMP_POINT=${line.length}; _hikidashi hikidashi '${word}' x; printf '%s\\n' "\${COMPREPLY[@]}"`
    const asked = [
      ask('hikidashi tree --estim', '--estim'),
      ask(`hikidashi read file://${folder}/docs/n`, `//${folder}/docs/n`),
      ask('hikidashi read READ', 'READ'),
    ]
    const child = execute(bash ?? '', ['--norc', '-c', [own, completion, ...asked].join('\n')], { cwd: folder })
    expect((await child).stdout).toBe(`--estimate \n//${folder}/docs/numbers.txt \nREADME.md\n`)
  })
})

/** What contents can hold that would do something to a terminal: a title, the clipboard, a link, colours, an overwritten line, a bell. */
const sequences =
  '\u001b]0;owned\u0007 \u001b]52;c;ZXZpbA==\u0007 \u001b]8;;https://evil.example\u001b\\link \u001b[1mbold \u009b31mred over\rwritten \u0008'
/** The status line of hikidashi itself, which is drawn over again and again, and is gone at the end. */
const esc = String.fromCharCode(27)
const statusLine = new RegExp(`\\r(?!\\r?\\n)[^\\r\\n]*?${esc}\\[K`, 'g')
/** What a terminal may get: text, tabs, line ends, and the colours of hikidashi itself. */
const harmless = new RegExp(`^(?:[^\\p{Cc}]|[\\n\\t]|${esc}\\[\\d{1,2}(?:;\\d{1,2})?m)*$`, 'u')

requires(
  'script',
  script !== undefined,
  'there is no script of util-linux',
)('with escape sequences in contents,', () => {
  let hostile = ''
  beforeAll(async () => {
    hostile = await mkdtemp(join(tmpdir(), 'hikidashi-sequences-'))
    const text = `---\ntitle: "harbour ${JSON.stringify(sequences).slice(1, -1)}"\n---\n# harbour ${sequences}\n\nThe harbour ${sequences} opens.\n`
    await writeFile(join(hostile, 'harbour.md'), text)
    const mounts = {
      'file:///h': {
        provider: 'files',
        root: '.',
        frontMatter: '**/*.md',
        rules: [{ match: '*.md', title: 'heading' }],
      },
      'search://h': { provider: 'search', over: ['file:///h'] },
    }
    await writeFile(join(hostile, 'hikidashi.json'), JSON.stringify({ mounts }))
  })
  afterAll(() => rm(hostile, { recursive: true, force: true }))

  const here = () => ({ cwd: hostile, env: { XDG_STATE_HOME: join(home, 'state') } })

  test.each([
    [['pack', 'harbour', '--explain']],
    [['search', 'harbour']],
    [['search', 'harbour', '--json']],
    [['ls', '--recursive', '--long']],
    [['ls', '--recursive', '--json']],
    [['tree', '--long']],
    [['read', 'harbour.md']],
    [['read', 'harbour.md', '--json']],
    [['stat', 'harbour.md']],
    [['templates']],
    [['complete', 'file:///h/{+path}', 'path', 'harbour']],
    [['status']],
    [['check']],
    [['doctor']],
  ])('hikidashi %j sends no control character of the contents to the terminal', async (args) => {
    const line = joinCommand([process.execPath, main, ...args])
    const { cwd, env } = here()
    const { stdout } = await execute(script ?? '', ['-qec', line, '/dev/null'], {
      ...{ cwd, encoding: 'utf8', maxBuffer: 2 ** 24 },
      env: { ...process.env, TERM: 'xterm', ...env },
    }).catch((error: { stdout: string }) => error)
    const shown = stdout.replaceAll(statusLine, '').replaceAll('\r\n', '\n')
    expect(shown.length).toBeGreaterThan(10)
    expect(shown).toMatch(harmless)
    if (['pack', 'search', 'read'].includes(args[0] ?? '')) expect(shown).toContain('\\u001b')
  })

  test('a pipe gets every byte unchanged', async () => {
    const { out } = await run(['read', 'harbour.md'], here())
    expect(out).toContain(sequences)
    const packed = await run(['pack', 'harbour'], here())
    expect(packed.out).toContain(`The harbour ${sequences} opens.`)
    const bytes = Buffer.from([0, 27, 91, 49, 109, 128, 255, 10])
    await writeFile(join(hostile, 'harbour.bin'), bytes)
    const child = await execute(process.execPath, [main, 'read', 'harbour.bin'], { ...here(), encoding: 'buffer' })
    expect(child.stdout).toEqual(bytes)
    await rm(join(hostile, 'harbour.bin'))
  })
})
