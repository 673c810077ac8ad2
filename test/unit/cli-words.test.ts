import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configText } from '../../src/cli/commands/init.ts'
import {
  httpInstructions,
  joinCommand,
  ownCommand,
  splitCommand,
  stdioInstructions,
  toHostServerName,
} from '../../src/cli/operations/command-line.ts'
import { uriFromArgument } from '../../src/cli/operations/source.ts'
import { CommandError, commandFailure, explainError, usageError } from '../../src/cli/terminal/exit.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type ErrorKind, ResourceError } from '../../src/core/errors.ts'
import { iteratePages } from '../../src/core/kit/groups.ts'

describe('the words of a command line', () => {
  test.each([
    ['npx -y server', ['npx', '-y', 'server']],
    [`  a  'b c' "d 'e'" f\\ g `, ['a', 'b c', "d 'e'", 'f g']],
    [`a '' ""`, ['a', '', '']],
    [`"a\\"b" 'c\\d' "e\\f"`, ['a"b', 'c\\d', 'e\\f']],
    ['echo $HOME *.txt; rm', ['echo', '$HOME', '*.txt;', 'rm']],
    ['', []],
  ])('of %j are split without a shell', (line, words) => expect(splitCommand(line, 'linux')).toEqual(words))

  test('keep the backslashes of Windows', () => {
    expect(splitCommand('C:\\node.exe "C:\\a b\\x.js"', 'win32')).toEqual(['C:\\node.exe', 'C:\\a b\\x.js'])
  })

  test.each(['a "b', "a 'b", 'a\\'])('of %j are refused', (line) =>
    expect(() => splitCommand(line, 'linux')).toThrow(CommandError),
  )

  test('are joined so that they split into the same words', () => {
    const words = ['/usr/bin/node', 'a b', "it's", '', '$x', '日本', 'a"b\\c']
    expect(splitCommand(joinCommand(words), 'linux')).toEqual(words)
  })
})

describe('an argument that is a URI or a path:', () => {
  const mounts = [{ address: 'docs://manual', config: { provider: 'files', root: 'manual' }, folder: '/srv' }] as const
  test.each([
    ['file:///a/b', 'file:///a/b'],
    ['docs://x', 'docs://x'],
    ['x://a', 'x://a'],
    ['urn:x', 'urn:x'],
    ['/srv/manual', 'docs://manual/'],
    ['manual/ch 1.md', 'docs://manual/ch%201.md'],
    ['manual/part/', 'docs://manual/part/'],
    ['other/文.md', 'file:///srv/other/%E6%96%87.md'],
    ['../manual', 'file:///manual'],
    ['/', 'file:///'],
    ['manual..', 'file:///srv/manual..'],
  ])('%s means %s', (argument, uri) => expect(uriFromArgument(argument, mounts, '/srv')).toBe(uri))

  test('the path of a folder gets a slash at its end', () => {
    expect(uriFromArgument('.', [], '/usr')).toBe('file:///usr/')
  })
})

describe('exit codes:', () => {
  test.each<[ErrorKind, number]>([
    ['invalid', 2],
    ['not-found', 4],
    ['too-large', 1],
    ['unavailable', 1],
    ['internal', 1],
  ])('an error of the kind %s exits with %i', (kind, exitCode) =>
    expect(explainError(new ResourceError(kind, 'why'))).toEqual({ message: 'why', exitCode }),
  )

  test.each([401, 403])('a server that answers with HTTP %i exits with 5', (status) => {
    const cause = new Error('it was refused', { cause: Object.assign(new Error('no'), { status }) })
    expect(explainError(new ResourceError('unavailable', 'why', {}, { cause }))).toEqual({
      message: 'why',
      exitCode: 5,
    })
  })

  test('a wrong command line exits with 2, a failure with 1', () => {
    expect(explainError(usageError('x'))).toEqual({ message: 'x', exitCode: 2 })
    expect(explainError(commandFailure('x'))).toEqual({ message: 'x', exitCode: 1 })
  })

  test('an internal error exits with 1, without a stack trace', () => {
    const { message, exitCode } = explainError(new TypeError('x is not a function'))
    expect(exitCode).toBe(1)
    expect(message).toContain('TypeError: x is not a function')
    expect(message).not.toMatch(/\n|\bat /)
  })
})

describe('the printed explanation of how to add a server to a host', () => {
  const command = ownCommand(['serve', '/my notes', '--stdio'], '/opt/hikidashi/dist/cli/main.js')

  test('has commands and settings to copy', () => {
    const text = httpInstructions({ name: 'notes', url: 'http://127.0.0.1:8787/mcp', command })
    expect(text).toContain('claude mcp add --transport http notes http://127.0.0.1:8787/mcp\n')
    expect(text).toContain('{"servers":{"notes":{"type":"http","url":"http://127.0.0.1:8787/mcp"}}}')
    expect(text).toContain(
      `claude mcp add notes -- ${process.execPath} /opt/hikidashi/dist/cli/main.js serve '/my notes' --stdio\n`,
    )
    expect(stdioInstructions({ name: 'notes', command })).toContain('{"mcpServers":{"notes":{"command":')
  })

  test('has a token if the server requires one, and says how to create it', () => {
    const url = 'http://127.0.0.1:8787/mcp'
    const text = httpInstructions({ name: 'notes', url, command, tokens: '/my tokens.json' })
    expect(text).toContain("hikidashi token add --tokens '/my tokens.json' --name my-host\n")
    expect(text).toContain(
      `claude mcp add --transport http notes ${url} --header 'Authorization: Bearer \${HIKIDASHI_TOKEN}'\n`,
    )
    expect(text).toContain('"headers":{"Authorization":"Bearer ${env:HIKIDASHI_TOKEN}"}')
    expect(text).toContain(`hikidashi add HOST --url ${url} --token-env HIKIDASHI_TOKEN\n`)
    expect(httpInstructions({ name: 'notes', url, command })).not.toContain('HIKIDASHI_TOKEN')
  })

  test('starts this installation, or npx if npx unpacked it', () => {
    expect(command).toEqual([process.execPath, '/opt/hikidashi/dist/cli/main.js', 'serve', '/my notes', '--stdio'])
    const unpacked = '/root/.npm/_npx/0a1b/node_modules/hikidashi/dist/cli/main.js'
    const npx = ownCommand(['serve'], unpacked, 'linux', () => true)
    expect(npx).toEqual(['npx', '-y', 'hikidashi', 'serve'])
    // As long as the package is in no registry, npx would not find it.
    expect(ownCommand(['serve'], unpacked, 'linux', () => false)).toEqual([process.execPath, unpacked, 'serve'])
  })

  test.each([
    ['my server', 'my-server'],
    ['日本', 'hikidashi'],
    ['a_b-C1', 'a_b-C1'],
  ])('has the server %s under the name %s', (name, expected) => expect(toHostServerName(name)).toBe(expected))
})

describe('the configuration that init writes', () => {
  const nothing = {
    ...{
      names: [],
      git: false,
      settings: false,
      dotenv: false,
      translations: false,
      frontMatter: false,
      prompts: [],
      skills: [],
      sqlite: [],
    },
  } as const
  const everything = {
    ...nothing,
    names: ['.git'],
    git: true,
    settings: true,
    dotenv: true,
    language: 'ja',
    translations: true,
    frontMatter: true,
    sqlite: ['app.db', 'data/other.db'],
  } as const
  test.each(['package-lock.json', 'pnpm-lock.yaml', 'yarn.lock'])(
    'offers a mount of the installed packages if the folder has a %s',
    (name) => {
      const offered = '// "pkg://npm": { "provider": "packages", "root": "."'
      const written = (names: readonly string[]) => configText(tmpdir(), 'file:///notes', { ...nothing, names })
      expect(written([name])).toContain(offered)
      expect(written(['package.json'])).not.toContain('pkg:')
    },
  )

  test.each([
    [{ ...nothing, names: ['README.md', 'docs', 'src'] }],
    [nothing],
    [{ ...nothing, names: ['readme [old].md'] }],
    [everything],
  ])('for a folder with %j is valid', async (survey) => {
    const folder = mkdtempSync(join(tmpdir(), 'hikidashi-init-'))
    try {
      const file = join(folder, 'hikidashi.json')
      mkdirSync(join(folder, '.git'))
      writeFileSync(join(folder, '.env'), '')
      writeFileSync(file, configText(folder, 'file:///notes', survey))
      const loaded = await loadConfig(file)
      expect(loaded).toMatchObject({ config: { mounts: { 'file:///notes': { provider: 'files', root: '.' } } } })
      // Whoever takes the comments away from an example gets what it says.
      writeFileSync(file, configText(folder, 'file:///notes', survey).replace(/^( *)\/\/ (?=")/gm, '$1'))
      expect(await loadConfig(file)).toMatchObject({ config: { http: { listen: { port: 8787 } } } })
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('pages of a remote list', () => {
  const cache = { ttlMs: 0, scope: 'private' } as const

  test('are fetched until there is no cursor', async () => {
    const pages = [
      { items: [1], nextCursor: 'a', cache },
      { items: [], nextCursor: 'b', cache },
      { items: [2], cache },
    ]
    const asked: unknown[] = []
    const items: number[] = []
    for await (const page of iteratePages(async (query) => {
      asked.push(query)
      return pages[asked.length - 1] ?? { items: [], cache }
    }))
      items.push(...page.items)
    expect(items).toEqual([1, 2])
    expect(asked).toEqual([{}, { cursor: 'a' }, { cursor: 'b' }])
  })

  test('that form a cycle give an error', async () => {
    const walk = async () => {
      for await (const _ of iteratePages(async () => ({ items: [], nextCursor: 'same', cache })));
    }
    await expect(walk()).rejects.toThrow('the same cursor twice')
  })
})
