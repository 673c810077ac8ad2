import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Catalog, createCatalog } from '../../src/core/catalog.ts'
import type { View } from '../../src/core/view.ts'
import { prompts } from '../../src/providers/prompts/index.ts'
import { remote } from '../../src/providers/remote/index.ts'
import { type HttpService, serveHttp } from '../../src/server/index.ts'
import { run as runCli } from '../support/cli.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { fixture } from '../support/mcp-servers.ts'
import { memory } from '../support/memory.ts'

const run = (args: readonly string[]) => runCli(args, { cwd: folder.outside })
const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
let folder: Folder
const folders: Folder[] = []
let service: HttpService
let catalog: Catalog
let view: View
const warned: string[] = []

/** This process serves a.txt, and mounts another one that serves b.txt and mounts this one. */
beforeAll(async () => {
  folder = createFolder()
  folder.write({ 'b.txt': 'b\n' })
  const library = createFolder()
  folders.push(library)
  library.write({ 'theirs.md': 'Theirs.' })
  const config = join(folder.outside, 'b.json')
  const target = {
    command: process.execPath,
    args: [cli, 'serve', '--config', config, '--stdio', '--log-level', 'error'],
  }
  catalog = createCatalog({
    mounts: [
      { address: 'own://a', provider: memory({ 'a.txt': 'a\n' }) },
      { address: 'own://prompts', provider: prompts({ source: memory({ 'ours.md': 'Ours.' }) }) },
      {
        address: 'remote://b',
        provider: remote({ target, timeoutMs: 3000, refreshMs: 500, log: (_, message) => void warned.push(message) }),
      },
    ],
  })
  view = catalog.view({ id: 'ada', roles: [] })
  service = await serveHttp({ view: catalog.view, name: 'a', version: '0', log: () => {}, host: '127.0.0.1', port: 0 })
  const mounts = {
    'own://b': { provider: 'files', root: folder.root, watch: false },
    'own://library': { provider: 'prompts', root: library.root, watch: false },
    'remote://a': { provider: 'remote', url: service.url, timeout: '3s', refresh: '500ms' },
  }
  writeFileSync(config, JSON.stringify({ mounts }))
})

afterAll(async () => {
  await catalog.close()
  await service.close()
  for (const one of [folder, ...folders]) one.remove()
})

test('two servers that mount each other answer, and their listings do not grow', async () => {
  const listed = async () => (await view.list()).items.map(({ uri }) => uri)
  const inTime = { timeout: 60_000, interval: 500 }
  await expect
    .poll(listed, inTime)
    .toEqual(expect.arrayContaining(['own://a/a.txt', 'remote://b/own/b/b.txt', 'remote://b/remote/a/own/a/a.txt']))
  expect((await view.read('remote://b/own/b/b.txt')).contents).toMatchObject([{ text: 'b\n' }])
  expect((await view.read('remote://b/remote/a/own/a/a.txt')).contents).toMatchObject([{ text: 'a\n' }])
  // What is listed again and again comes to an end: nothing has been through one process twice.
  await expect.poll(() => warned, inTime).toContain('the server lists resources of this server: they are left out')
  for (let times = 0; times < 6; times++) {
    const uris = await listed()
    expect(uris.length).toBeLessThanOrEqual(8)
    expect(uris.filter((uri) => uri.split('remote').length > 4)).toEqual([])
  }
}, 120_000)

test('two servers that mount each other relay their prompts once, and the lists do not grow', async () => {
  const expected = ['assemble_context', 'ours', 'remote_ours', 'theirs']
  const names = async () => ((await view.prompts?.list())?.items ?? []).map(({ name }) => name).sort()
  await expect.poll(names, { timeout: 60_000, interval: 500 }).toEqual(expected)
  for (let times = 0; times < 6; times++) {
    // A list leaves out a server that does not answer in time.
    const now = await names()
    expect(now).toEqual(expected.filter((name) => now.includes(name)))
  }
  expect(await view.prompts?.get({ name: 'theirs' })).toMatchObject({ messages: [{ content: { text: 'Theirs.' } }] })
}, 120_000)

test('check and ls read a mounted server like any other mount, and check names a command that cannot be started', async () => {
  const target = fixture('varied', 'sdk113')
  if (!('command' in target)) throw new Error('no command')
  const config = join(folder.outside, 'check.json')
  const { command, args } = target
  writeFileSync(config, JSON.stringify({ mounts: { 'mcp://varied': { provider: 'remote', command, args } } }))
  const checked = await run(['check', '--config', config])
  expect(checked.out + checked.err).toContain('mcp://varied')
  expect(checked.code).toBe(0)
  const listed = await run(['ls', '--recursive', '--config', config])
  expect(listed.out).toContain('file/srv/x%20y.txt')
  writeFileSync(
    config,
    JSON.stringify({ mounts: { 'mcp://none': { provider: 'remote', command: '/nowhere/server' } } }),
  )
  const failed = await run(['check', '--config', config])
  expect(failed.code).not.toBe(0)
  expect(failed.out + failed.err).toContain('/nowhere/server')
}, 120_000)
