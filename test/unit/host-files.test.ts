import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { localLaunch, remoteLaunch } from '../../src/cli/hosts/add-launch.ts'
import {
  fileDiff,
  hostSettingsFile,
  reportHost,
  serversOf,
  showDiff,
  startsHikidashi,
  withEntry,
  withoutEntry,
} from '../../src/cli/hosts/change.ts'
import { writeHostFile } from '../../src/cli/hosts/files.ts'
import { hasRefusedSyntax } from '../../src/cli/hosts/json.ts'
import { hosts } from '../../src/cli/hosts/table.ts'
import type { HostScope, Launch, Machine } from '../../src/cli/hosts/types.ts'
import { npxCommand } from '../../src/cli/operations/command-line.ts'
import { asked, createPlace, hostCalled, openWith, putFile, started } from '../support/hosts.ts'

const folder = join(import.meta.dirname, '../data/hosts')
const goldens = readdirSync(folder)
  .map((file) => file.split('.'))
  .filter(([, kind]) => kind === 'before')
  .map(([id = '', , ending = '']) => ({ id, ending }))

let machine: Awaited<ReturnType<typeof createPlace>>
beforeAll(async () => {
  machine = await createPlace()
})
afterAll(() => machine.remove())

const entryOf = (id: string, launch: Launch, scope: HostScope = 'user', settings: unknown = {}) =>
  hostCalled(id).entryOf(launch, { name: 'hikidashi', scope, machine }, settings)

describe('the settings file of a host', () => {
  test('has an example in the test data for every host', () =>
    expect(goldens.map(({ id }) => id).sort()).toEqual(hosts.map(({ id }) => id).sort()))

  const cases = goldens.flatMap(({ id, ending }) =>
    (['stdio', 'http'] as const).map((kind) => ({ id, kind, ending, launch: kind === 'stdio' ? started : asked })),
  )
  test.each(cases)(
    'of $id gets a server over $kind if the host supports it, and keeps its other servers',
    async ({ id, kind, ending, launch }) => {
      const host = hostCalled(id)
      const golden = (name: string) => readFileSync(join(folder, `${id}.${name}.${ending}`))
      const before = golden('before')
      const opened = await openWith(host, machine, before)
      const others = serversOf(opened)
      if (id === 'claude-desktop' && kind === 'http')
        return expect(() => entryOf(id, launch)).toThrow(/under Connectors/)
      if (id === 'zed' && kind === 'http') return expect(() => entryOf(id, launch)).toThrow(/environment variable/)
      await writeHostFile(opened.before, withEntry(opened, 'hikidashi', entryOf(id, launch, 'user', opened.settings)))
      expect(readFileSync(opened.before.file, 'utf8')).toBe(golden(kind).toString())
      const again = await openWith(host, machine, golden(kind))
      expect(serversOf(again)).toMatchObject(others)
      expect(startsHikidashi('hikidashi', host.foundIn(serversOf(again).hikidashi ?? {}))).toBe(true)
      const rest = withoutEntry(again, 'hikidashi')
      const after = host.serversAt(again.settings)
      await openWith(host, machine, rest).then((left) => expect(serversOf(left)).toEqual(others))
      expect(after).toEqual(host.serversAt(opened.settings))
    },
  )

  const at = (platform: NodeJS.Platform, env: Machine['env'] = {}): Machine =>
    platform === 'win32'
      ? {
          platform,
          env: { APPDATA: 'C:\\Users\\me\\AppData\\Roaming', ...env },
          home: 'C:\\Users\\me',
          folder: 'C:\\work',
        }
      : { platform, env, home: '/home/me', folder: '/work' }

  test.each<[string, NodeJS.Platform, string, string | undefined]>([
    ['claude-code', 'linux', '/home/me/.claude.json', '/work/.mcp.json'],
    ['claude-code', 'win32', 'C:\\Users\\me\\.claude.json', 'C:\\work\\.mcp.json'],
    ['claude-desktop', 'darwin', '/home/me/Library/Application Support/Claude/claude_desktop_config.json', undefined],
    ['claude-desktop', 'win32', 'C:\\Users\\me\\AppData\\Roaming\\Claude\\claude_desktop_config.json', undefined],
    ['claude-desktop', 'linux', '/home/me/.config/Claude/claude_desktop_config.json', undefined],
    ['vscode', 'darwin', '/home/me/Library/Application Support/Code/User/mcp.json', '/work/.vscode/mcp.json'],
    ['vscode', 'win32', 'C:\\Users\\me\\AppData\\Roaming\\Code\\User\\mcp.json', 'C:\\work\\.vscode\\mcp.json'],
    ['vscode', 'linux', '/home/me/.config/Code/User/mcp.json', '/work/.vscode/mcp.json'],
    ['cursor', 'darwin', '/home/me/.cursor/mcp.json', '/work/.cursor/mcp.json'],
    ['codex', 'linux', '/home/me/.codex/config.toml', '/work/.codex/config.toml'],
    ['gemini-cli', 'win32', 'C:\\Users\\me\\.gemini\\settings.json', 'C:\\work\\.gemini\\settings.json'],
    ['goose', 'darwin', '/home/me/.config/goose/config.yaml', undefined],
    ['goose', 'win32', 'C:\\Users\\me\\AppData\\Roaming\\Block\\goose\\config\\config.yaml', undefined],
    ['opencode', 'darwin', '/home/me/.config/opencode/opencode.json', '/work/opencode.json'],
    ['zed', 'darwin', '/home/me/.config/zed/settings.json', '/work/.zed/settings.json'],
    ['zed', 'win32', 'C:\\Users\\me\\AppData\\Roaming\\Zed\\settings.json', 'C:\\work\\.zed\\settings.json'],
  ])('of %s on %s is at %s', (id, platform, user, project) => {
    expect(hostSettingsFile(hostCalled(id), 'user', at(platform))).toBe(user)
    if (project === undefined)
      expect(() => hostSettingsFile(hostCalled(id), 'project', at(platform))).toThrow(/has no settings for a project/)
    else expect(hostSettingsFile(hostCalled(id), 'project', at(platform))).toBe(project)
  })

  test.each([
    ['claude-code', 'CLAUDE_CONFIG_DIR', '/x/.claude.json'],
    ['codex', 'CODEX_HOME', '/x/config.toml'],
    ['gemini-cli', 'GEMINI_CLI_HOME', '/x/.gemini/settings.json'],
    ['goose', 'XDG_CONFIG_HOME', '/x/goose/config.yaml'],
    ['zed', 'XDG_CONFIG_HOME', '/x/zed/settings.json'],
  ])('of %s is at the place that %s names', (id, name, file) =>
    expect(hostSettingsFile(hostCalled(id), 'user', at('linux', { [name]: '/x' }))).toBe(file),
  )

  test('of opencode is opencode.jsonc instead of opencode.json if it exists', async () => {
    const other = await createPlace()
    const file = join(other.folder, 'opencode.jsonc')
    writeFileSync(file, '{}')
    expect(hostSettingsFile(hostCalled('opencode'), 'project', other)).toBe(file)
    await other.remove()
  })
})

describe('the entry that a host gets', () => {
  test('names the folder of the project by a placeholder if the host has one, and variables by their names', () => {
    const launch: Launch = {
      transport: 'stdio',
      command: [
        'npx',
        'hikidashi',
        'serve',
        { path: join(machine.folder, 'docs') },
        { path: machine.folder },
        { path: '/srv' },
      ],
      env: { DATABASE_URL: [{ variable: 'DATABASE_URL' }] },
    }
    const args = ['hikidashi', 'serve', '${workspaceFolder}/docs', '${workspaceFolder}', '/srv']
    const env = { DATABASE_URL: '${env:DATABASE_URL}' }
    expect(entryOf('vscode', launch, 'project').value).toEqual({ type: 'stdio', command: 'npx', args, env })
    expect(entryOf('cursor', launch, 'project').value).toMatchObject({ args, env })
    expect(entryOf('cursor', launch, 'user').value).toMatchObject({
      args: ['hikidashi', 'serve', join(machine.folder, 'docs'), machine.folder, '/srv'],
    })
    expect(entryOf('codex', launch).value).toMatchObject({ env_vars: ['DATABASE_URL'] })
    expect(entryOf('goose', launch).value).toMatchObject({ env_keys: ['DATABASE_URL'] })
    expect(entryOf('opencode', launch).value).toMatchObject({ environment: { DATABASE_URL: '{env:DATABASE_URL}' } })
    expect(() => entryOf('zed', launch)).toThrow(/Leave out --env/)
  })

  test.each([
    ['claude-code', '/a/${HOME}'],
    ['vscode', '/a/${x}'],
    ['gemini-cli', '/a/$HOME'],
    ['opencode', '/a/{env:X}'],
  ])('for %s is refused with the path %s, which the host would expand', (id, path) => {
    const launch: Launch = { transport: 'stdio', command: ['node', 'serve', { path }], env: {} }
    expect(() => entryOf(id, launch)).toThrow(/would take a part of/)
  })

  test('has an input if VS Code should ask for the token, and the input is removed with the entry unless another entry uses it', async () => {
    const host = hostCalled('vscode')
    const launch = remoteLaunch({ url: 'https://context.example.org/mcp', headers: [], asksToken: true })
    const opened = await openWith(
      host,
      machine,
      '{\n  "inputs": [{ "id": "other" }],\n  "servers": {\n    "a": {}\n  }\n}\n',
    )
    const text = withEntry(opened, 'hikidashi', entryOf('vscode', launch))
    expect(JSON.parse(text)).toEqual({
      inputs: [
        { id: 'other' },
        { type: 'promptString', id: 'hikidashi-token', description: 'Token for hikidashi', password: true },
      ],
      servers: {
        a: {},
        hikidashi: {
          type: 'http',
          url: 'https://context.example.org/mcp',
          headers: { Authorization: 'Bearer ${input:hikidashi-token}' },
        },
      },
    })
    expect(JSON.parse(withoutEntry(await openWith(host, machine, text), 'hikidashi'))).toEqual(opened.settings)
    const used = text.replace('"a": {}', '"a": { "headers": { "X": "${input:hikidashi-token}" } }')
    const rest = withoutEntry(await openWith(host, machine, used), 'hikidashi')
    expect(JSON.parse(rest)).toMatchObject({ inputs: [{ id: 'other' }, { id: 'hikidashi-token' }] })
    expect(() => entryOf('cursor', launch)).toThrow(/cannot ask/)
  })

  test('comes with the links and commands that the hosts document', () => {
    const context = { name: 'notes', scope: 'user', machine } as const
    const waysOf = (id: string, launch: Launch) =>
      (hostCalled(id).waysOf?.(launch, entryOf(id, launch), context) ?? []).map(({ text }) => text)
    const npx: Launch = {
      transport: 'stdio',
      command: ['npx', '-y', 'hikidashi', 'serve', '/srv/a b', '--stdio'],
      env: {},
    }
    const entry = { type: 'stdio', command: 'npx', args: ['-y', 'hikidashi', 'serve', '/srv/a b', '--stdio'] }
    expect(waysOf('claude-code', npx)).toEqual([
      "claude mcp add --scope user notes -- npx -y hikidashi serve '/srv/a b' --stdio",
    ])
    expect(waysOf('claude-code', asked)[0]).toMatch(
      /^claude mcp add-json --scope user notes '\{.*\$\{CONTEXT_TOKEN\}.*\}'$/,
    )
    const [command = '', link = '', web = ''] = waysOf('vscode', npx)
    expect(JSON.parse(/'(.*)'/.exec(command)?.[1] ?? '')).toEqual({ name: 'notes', ...entry })
    expect(JSON.parse(decodeURIComponent(link.split('?')[1] ?? ''))).toEqual({ name: 'notes', ...entry })
    expect(JSON.parse(new URL(web).searchParams.get('config') ?? '')).toEqual(entry)
    const cursor = new URL(waysOf('cursor', npx)[0] ?? '').searchParams
    expect(JSON.parse(Buffer.from(cursor.get('config') ?? '', 'base64').toString())).toEqual(entry)
    expect(waysOf('codex', npx)).toEqual(["codex mcp add notes -- npx -y hikidashi serve '/srv/a b' --stdio"])
    expect(new URL(waysOf('goose', npx)[0] ?? '').searchParams.getAll('arg')).toEqual(entry.args)
    expect(waysOf('goose', started)).toEqual([])
    expect(waysOf('goose', asked)).toEqual([])
  })
})

describe('npx as the command of an entry', () => {
  test.each<[NodeJS.Platform, readonly string[]]>([
    ['linux', ['npx', '-y', 'hikidashi', 'serve']],
    ['win32', ['cmd', '/c', 'npx', '-y', 'hikidashi', 'serve']],
  ])('is started on %s by %j', (platform, words) => expect(npxCommand(['serve'], platform)).toEqual(words))
})

describe('a secret in an entry', () => {
  const remote = (options: Partial<Parameters<typeof remoteLaunch>[0]>) =>
    remoteLaunch({ url: 'https://context.example.org/mcp', headers: [], ...options })
  const token = 'ghp_0123456789abcdefghijklmnopqrstuvwxyzAB'

  test.each([
    [() => remote({ headers: [`Authorization: Bearer ${token}`] })],
    [() => remote({ headers: ['X-Api-Key: correct horse'] })],
    [() => remote({ headers: [`X-Other: ${token}`] })],
    [() => remote({ url: `https://me:${token}@context.example.org/mcp` })],
    [() => remote({ url: `https://context.example.org/mcp?api_key=${token}` })],
    [() => remote({ url: `https://context.example.org/mcp?q=${token}` })],
    [() => remote({ tokenVariable: `Bearer ${token}` })],
    [() => localLaunch({ folders: [], env: [`DB_PASSWORD=${token}`] })],
    [() => localLaunch({ folders: [], env: [`OTHER=${token}`] })],
  ])('is refused, and not repeated (%#)', (attempt) => {
    let message = ''
    try {
      attempt()
    } catch (error) {
      message = String(error)
    }
    expect(message).toMatch(/variable/)
    expect(message).not.toContain(token)
    expect(message).not.toContain('correct horse')
  })

  test('is accepted as a variable, and other texts are accepted; a malformed or repeated header is refused', () => {
    expect(remote({ headers: ['X-Api-Key: ${KEY}', 'X-Team: docs'], tokenVariable: 'T' })).toMatchObject({
      headers: {
        'X-Api-Key': [{ variable: 'KEY' }],
        'X-Team': ['docs'],
        Authorization: ['Bearer ', { variable: 'T' }],
      },
    })
    expect(() => remote({ headers: ['authorization: ${A}'], tokenVariable: 'T' })).toThrow(/given twice/)
    for (const header of ['X-Team', ': docs', 'X Team: docs', ''])
      expect(() => remote({ headers: [header] })).toThrow('Write a header as "Name: value".')
    expect(localLaunch({ folders: [], env: ['LANG=ja', 'TOKEN'] })).toMatchObject({
      env: { LANG: ['ja'], TOKEN: [{ variable: 'TOKEN' }] },
    })
  })

  test('that is a part of a header is refused for Codex', () =>
    expect(() => entryOf('codex', remote({ headers: ['X-Trace: a-${KEY}'] }))).toThrow(/a whole header/))
})

describe('the report on a host', () => {
  test('names its files, their servers, a missing program, and the place of a syntax error', async () => {
    const zed = hostCalled('zed')
    await openWith(
      zed,
      machine,
      '{ "context_servers": { "notes": { "command": "/gone/node", "args": ["/x/cli/main.js", "serve"] } } }',
    )
    expect(await reportHost(zed, machine)).toMatchObject({
      found: true,
      files: [
        { scope: 'user', exists: true, servers: [{ name: 'notes', transport: 'stdio', missing: '/gone/node' }] },
        { scope: 'project', exists: false, servers: [] },
      ],
    })
    await putFile(zed, machine, '{ "context_servers": ')
    expect(await reportHost(zed, machine)).toMatchObject({
      files: [{ problem: expect.stringContaining('settings.json:1:22') }, {}],
    })
  })

  test.each([
    ['x', ['npx', '-y', 'hikidashi', 'serve', '/srv'], true],
    ['x', ['npx', '-y', 'hikidashi@0.1.0', 'serve'], true],
    ['x', ['/usr/bin/hikidashi', 'serve'], true],
    ['hikidashi', ['npx', '-y', 'other', '/srv/hikidashi'], false],
    ['x', ['node', '/opt/dist/cli/main.js', 'serve'], true],
    ['my-hikidashi', undefined, true],
    ['x', undefined, false],
  ])('recognizes an entry %s with the command %j as one of hikidashi: %s', (name, command, ours) =>
    expect(startsHikidashi(name, command === undefined ? { url: 'https://x' } : { command })).toBe(ours),
  )

  test('lists a settings file for a user and for a project if the host has both', async () => {
    const scopesOf = async (id: string) => (await reportHost(hostCalled(id), machine)).files.map(({ scope }) => scope)
    expect(await scopesOf('zed')).toEqual(['user', 'project'])
    expect(await scopesOf('goose')).toEqual(['user'])
  })
})

describe('the diff of a settings file', () => {
  test.each([
    ['a\n', 'a\n', ''],
    [undefined, 'a\n', '--- /dev/null\n+++ f\n@@ -0,0 +1 @@\n+a\n'],
    ['a\n', undefined, '--- f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n'],
    [
      '1\n2\n3\n4\n5\n6\n7\n8\n',
      '1\n2\n3\n4\nx\n5\n6\n7\n8\n',
      '--- f\n+++ f\n@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+x\n 5\n 6\n 7\n',
    ],
    ['a', 'a\n', '--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n'],
  ])('from %j to %j is a unified diff', (before, after, diff) => expect(fileDiff('f', before, after)).toBe(diff))

  test('shows no secret of other entries, and escapes control characters on a terminal', async () => {
    const token = 'ghp_0123456789abcdefghijklmnopqrstuvwxyzAB'
    const before = `{\n  "GITHUB_TOKEN": "${token}", // \u001b[2J\n}\n`
    const shown = async (isTerminal: boolean) => {
      const out: string[] = []
      const write = async (text: string | Uint8Array) => void out.push(String(text))
      await showDiff(fileDiff('f', before, before.replace('}', '  "a": 1\n}')), { out: { isTerminal, write } })
      return out.join('')
    }
    expect(await shown(false)).toContain('   "GITHUB_TOKEN": "[redacted]", // \u001b[2J\n+  "a": 1\n }\n')
    expect(await shown(true)).toContain('\\u001b[2J')
  })
})

describe('a comment or a trailing comma', () => {
  test.each([
    ['{ "a": "// x,]" }', false, false],
    ['{ "a": 1, }', true, true],
    ['{ "a": 1 } // x', true, false],
  ])('in %j is reported if a host cannot read it', (text, strict, commented) => {
    expect(hasRefusedSyntax(text, { comments: true, trailingCommas: true })).toBe(strict)
    expect(hasRefusedSyntax(text, { comments: false, trailingCommas: true })).toBe(commented)
  })
})
