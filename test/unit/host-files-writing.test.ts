import { readdirSync, writeFileSync } from 'node:fs'
import { chmod, link, lstat, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openHostFile, withEntry, withoutEntry } from '../../src/cli/hosts/change.ts'
import { backupPath, readHostFile, writeHostFile } from '../../src/cli/hosts/files.ts'
import { createPlace, hostCalled, openWith, started } from '../support/hosts.ts'

let machine: Awaited<ReturnType<typeof createPlace>>
let file = ''
beforeEach(async () => {
  machine = await createPlace()
  file = join(machine.home, 'deep', 'er', 'settings.json')
})
afterEach(() => machine.remove())

const put = async (content: string | Buffer) => {
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, content)
  return readHostFile(file)
}
const names = async () => (await readdir(dirname(file))).sort()

describe('the settings file of a project', () => {
  test.each([
    ['claude-code', '.mcp.json', '.mcp.json'],
    ['vscode', '.vscode/mcp.json', '.vscode/mcp.json'],
    ['cursor', '.cursor/mcp.json', '.cursor'],
    ['codex', '.codex/config.toml', '.codex'],
    ['gemini-cli', '.gemini/settings.json', '.gemini/settings.json'],
  ])('of %s is refused if %s leads out of the project through a link', async (id, file, linked) => {
    const at = join(machine.folder, linked)
    const outside = join(machine.home, 'outside')
    await mkdir(dirname(at), { recursive: true })
    await symlink(outside, at)
    const refused = expect.objectContaining({ message: expect.stringContaining('leads out of') })
    // The link leads nowhere, then to a file or a folder.
    await expect(openHostFile(hostCalled(id), 'project', machine)).rejects.toEqual(refused)
    if (file === linked) await writeFile(outside, '{}')
    else await mkdir(outside)
    await expect(openHostFile(hostCalled(id), 'project', machine)).rejects.toEqual(refused)
  })

  test('may be a link within the project', async () => {
    await writeFile(join(machine.folder, 'shared.json'), '{}')
    await symlink('shared.json', join(machine.folder, '.mcp.json'))
    const { before } = await openHostFile(hostCalled('claude-code'), 'project', machine)
    await writeHostFile(before, '{ }')
    expect(await readFile(join(machine.folder, 'shared.json'), 'utf8')).toBe('{ }')
  })
})

describe('a settings file that is written', () => {
  test('is created with its folders, for this user only, and no other file is left', async () => {
    await writeHostFile(await readHostFile(file), 'a\n')
    expect(await readFile(file, 'utf8')).toBe('a\n')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await names()).toEqual(['settings.json'])
  })

  test('keeps its mode, its byte order mark, and a copy of its old content', async () => {
    const before = await put('\ufeffold')
    await chmod(file, 0o640)
    expect(before.text).toBe('old')
    await writeHostFile(before, 'new')
    expect(await readFile(file, 'utf8')).toBe('\ufeffnew')
    expect((await stat(file)).mode & 0o777).toBe(0o640)
    expect(await readFile(backupPath(before), 'utf8')).toBe('\ufeffold')
    expect((await stat(backupPath(before))).mode & 0o777).toBe(0o640)
    expect(await names()).toEqual(['settings.json', 'settings.json.hikidashi.bak'])
  })

  test('behind a symbolic link is the target, and the link stays', async () => {
    const target = join(machine.folder, 'dotfiles.json')
    await mkdir(dirname(file), { recursive: true })
    await symlink(target, file)
    await writeHostFile(await readHostFile(file), 'made through a link that led nowhere')
    expect((await lstat(file)).isSymbolicLink()).toBe(true)
    const before = await readHostFile(file)
    await writeHostFile(before, 'new')
    expect((await lstat(file)).isSymbolicLink()).toBe(true)
    expect(await readFile(target, 'utf8')).toBe('new')
    expect(backupPath(before)).toBe(`${target}.hikidashi.bak`)
  })

  test.each<[string, () => Promise<void>]>([
    ['changed', () => writeFile(file, 'theirs')],
    ['taken away', () => rm(file)],
    ['replaced by a link', () => rm(file).then(() => symlink(join(machine.folder, 'x'), file))],
  ])('is not overwritten if it was %s since it was read', async (_, meddle) => {
    const before = await put('old')
    await meddle()
    await expect(writeHostFile(before, 'mine')).rejects.toThrow(/Another program has just changed/)
    expect(await readFile(file, 'utf8').catch(() => '')).not.toBe('mine')
    expect((await names()).filter((name) => name !== 'settings.json')).toEqual([])
  })

  test('is not overwritten, and its copy is not replaced, if it is changed while the new text is written', async () => {
    const before = await put('old')
    await writeFile(backupPath(before), 'older')
    let isRunning = true
    const written = writeHostFile(before, 'mine').finally(() => {
      isRunning = false
    })
    const meddle = () => {
      if (readdirSync(dirname(file)).some((name) => name.endsWith('.tmp'))) writeFileSync(file, 'theirs')
      else if (isRunning) setImmediate(meddle)
    }
    meddle()
    await expect(written).rejects.toThrow(/Another program has just changed/)
    expect(await readFile(file, 'utf8')).toBe('theirs')
    expect(await readFile(backupPath(before), 'utf8')).toBe('older')
    expect(await names()).toEqual(['settings.json', 'settings.json.hikidashi.bak'])
  })

  test('is not overwritten if it was created meanwhile', async () => {
    const before = await readHostFile(file)
    await put('theirs')
    await expect(writeHostFile(before, 'mine')).rejects.toThrow(/Another program has just changed/)
    expect(await readFile(file, 'utf8')).toBe('theirs')
  })

  test.each<[string, () => Promise<unknown>, RegExp]>([
    ['not text', () => put(Buffer.from([0x7b, 0xff, 0xfe])), /not text in UTF-8/],
    ['UTF-16', () => put(Buffer.from('\ufeff{}', 'utf16le')), /not text in UTF-8/],
    ['a folder', () => mkdir(file, { recursive: true }), /is not a regular file/],
    [
      'below a file',
      () => mkdir(dirname(dirname(file)), { recursive: true }).then(() => writeFile(dirname(file), '')),
      /cannot be read \(ENOTDIR\)/,
    ],
    [
      'a link to itself',
      () => mkdir(dirname(file), { recursive: true }).then(() => symlink(file, file)),
      /leads through 40 symbolic links or more/,
    ],
  ])('is refused if it is %s', async (_, make, message) => {
    await make().catch(() => {})
    await expect(readHostFile(file)).rejects.toThrow(message)
  })

  test('is replaced, so that a second hard link keeps the old content', async () => {
    const before = await put('old')
    await link(file, join(machine.folder, 'other'))
    await writeHostFile(before, 'new')
    expect(await readFile(join(machine.folder, 'other'), 'utf8')).toBe('old')
  })
})

describe('adding and removing an entry', () => {
  const zed = hostCalled('zed')
  const add = async (content: string | undefined) => {
    const opened = await openWith(zed, machine, content)
    const entry = zed.entryOf(started, { name: 'hikidashi', scope: 'user', machine }, opened.settings)
    await writeHostFile(opened.before, withEntry(opened, 'hikidashi', entry))
    return openHostFile(zed, 'user', machine)
  }

  test.each([
    ['', '{\n  "context_servers": {}\n}\n'],
    ['{}', '{\n  "context_servers": {}\n}'],
    ['{ }\r\n', '{\r\n  "context_servers": {}\r\n}\r\n'],
    ['// nothing yet', '// nothing yet\n{\n  "context_servers": {}\n}\n'],
    ['{\n\t"a": 1 // one\n}', '{\n\t"context_servers": {},\n\t"a": 1 // one\n}'],
  ])('leaves %j with an empty list of servers', async (content, rest) => {
    const opened = await add(content)
    expect(opened.settings).toMatchObject({ context_servers: { hikidashi: { command: '/opt/node' } } })
    expect(withoutEntry(opened, 'hikidashi')).toBe(rest)
  })

  test('keeps changes that others wrote in between', async () => {
    const opened = await add('{ "a": 1 }')
    const text = opened.before.text?.replace('"a": 1', '"a": 2') ?? ''
    await writeFile(opened.before.file, text)
    const changed = await openHostFile(zed, 'user', machine)
    expect(JSON.parse(withoutEntry(changed, 'hikidashi'))).toEqual({ a: 2, context_servers: {} })
  })
})
