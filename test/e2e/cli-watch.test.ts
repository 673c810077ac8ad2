import { appendFile, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { main, type Running, run, start, writeNotes } from '../support/cli.ts'
import { until } from '../support/live.ts'
import { aged, serveOfficialLive, serveOurs } from '../support/live-servers.ts'
import { listen, scripted } from '../support/mcp-servers.ts'

let home = ''
let folder = ''
const running = new Set<Running>()
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'hikidashi-watch-'))
  folder = await writeNotes(home)
})
afterAll(async () => {
  for (const { child } of running) child.kill('SIGKILL')
  await rm(home, { recursive: true, force: true })
})

/** A mount of which nothing can be told. */
const still = () => ({ provider: 'files', root: folder, watch: false })
const uri = (path: string) => `file://${folder}${path === '' ? '' : `/${path}`}`

/** A watch that has begun, and the lines that it has printed so far. */
async function watch(args: readonly string[], cwd = folder) {
  const command = start(['watch', ...args], { cwd })
  running.add(command)
  let out = ''
  command.child.stdout.on('data', (text: string) => (out += text))
  const [headline] = await command.says(/^Watching .*$/m)
  return { ...command, headline, lines: () => out.split('\n').slice(0, -1) }
}

describe('hikidashi watch', () => {
  test('prints changes in files and folders, until Ctrl-C', async () => {
    const { child, ended, headline, lines } = await watch(['README.md', uri('docs/'), 'README.md'])
    expect(headline).toBe('Watching 2 URIs. Ctrl-C ends it.')
    await appendFile(join(folder, 'README.md'), 'more\n')
    await until(() => lines().length > 0)
    expect(new Set(lines())).toEqual(new Set([`changed  ${uri('README.md')}`]))
    await writeFile(join(folder, 'docs', 'deep', 'new.txt'), 'new')
    await until(() => lines().includes(`changed  ${uri('docs/deep/new.txt')}`))
    expect(lines()).not.toContain(`changed  ${uri('docs/')}`)
    child.kill('SIGINT')
    expect(await ended).toMatchObject({ code: 0, signal: null })
  })

  test('watches every mount if no URI is given; --list adds the list of resources, and --json prints each change as JSON', async () => {
    const { child, ended, headline, lines } = await watch(['--list', '--json'])
    expect(headline).toBe('Watching 1 URI and the list. Ctrl-C ends it.')
    const before = Date.now()
    await writeFile(join(folder, 'brand-new.txt'), 'new')
    await until(
      () => lines().some((line) => line.includes('"listed"')) && lines().some((line) => line.includes('"uri"')),
    )
    for (const line of lines()) {
      const { time, ...rest } = JSON.parse(line)
      expect(Date.parse(time)).toBeGreaterThanOrEqual(before)
      expect([{ listed: true }, { uri: uri('brand-new.txt') }]).toContainEqual(rest)
    }
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ code: 0, signal: null })
  })

  test('says that a watched URI has no resource, and reports when it appears', async () => {
    const { child, ended, lines, says } = await watch(['later.md', 'README.md'])
    await says(/^Nothing is at file:.*\/later\.md now, or you may not see it\. It is reported when it appears\.$/m)
    await writeFile(join(folder, 'later.md'), 'now')
    await until(() => lines().length > 0)
    expect(new Set(lines())).toEqual(new Set([`changed  ${uri('later.md')}`]))
    child.kill('SIGINT')
    const { code, err } = await ended
    expect(code).toBe(0)
    expect(err).not.toContain('README.md now')
  })

  test('prints the changes of a server that it starts with --command', async () => {
    const { child, ended, lines } = await watch(
      ['--command', `${process.execPath} ${main} serve notes --name mine`],
      home,
    )
    await rename(join(folder, 'docs', 'numbers.txt'), join(folder, 'docs', 'renamed.txt'))
    await until(() => lines().includes('changed  file:///mine'))
    child.kill('SIGINT')
    expect(await ended).toMatchObject({ code: 0, signal: null })
  })

  test.each(['of the newest revision', 'with sessions'])(
    'prints the changes of a server %s over HTTP, and all watched URIs as changed after the server stopped and started again',
    async (kind) => {
      const ours = await serveOurs('mcp')
      const server = kind === 'with sessions' ? await aged(ours) : ours
      const { url } = server.target as { readonly url: string }
      const { child, ended, lines, says } = await watch(['--url', url, 'x://r/a', 'x://r/b', 'y://none'])
      await says(/Not watched: y:\/\/none\./)
      await server.touch('x://r/a')
      await until(() => lines().length > 0)
      expect(lines()).toEqual(['changed  x://r/a'])
      await server.stop()
      await says(/connecting again/)
      await server.start()
      await until(() => lines().length >= 3, 15_000)
      expect(lines().slice(1).sort()).toEqual(['changed  x://r/a', 'changed  x://r/b'])
      child.kill('SIGINT')
      expect(await ended).toMatchObject({ code: 0, signal: null })
    },
  )

  test('watches all mounts of a configuration if no URI is given, and names the mounts that report no changes', async () => {
    const mounts = { 'docs://notes': { provider: 'files', root: folder }, 'docs://still': still() }
    const config = join(home, 'all.json')
    await writeFile(config, JSON.stringify({ mounts }))
    const { child, ended, lines, says } = await watch(['--config', config], home)
    await says(/^These mounts report no changes, so they are not watched: docs:\/\/still$/m)
    await says(/^Watching 1 URI\. /m)
    await appendFile(join(folder, 'README.md'), 'more\n')
    await until(() => lines().includes('changed  docs://notes/README.md'), 15_000)
    child.kill('SIGINT')
    expect(await ended).toMatchObject({ code: 0, signal: null })
  })

  test.each([['text'], ['JSON', '--json']])(
    'prints a line of %s for each change in the mounts of a configuration',
    async (_, ...options) => {
      const mounts = { 'docs://notes': { provider: 'files', root: folder }, 'docs://still': still() }
      const config = join(home, 'watched.json')
      await writeFile(config, JSON.stringify({ mounts }))
      const named = ['docs://notes/README.md', 'docs://still/a', 'docs://notes/docs/']
      const { child, ended, lines, says } = await watch([...named, '--config', config, ...options], home)
      await says(/^Not watched: docs:\/\/still\/a\. /m)
      const uris = () => lines().map((line) => (options.length > 0 ? JSON.parse(line).uri : line.split('  ')[1]))
      await appendFile(join(folder, 'README.md'), 'more\n')
      await until(() => uris().includes('docs://notes/README.md'), 15_000)
      await appendFile(join(folder, 'docs', 'numbers.txt'), 'more\n')
      await until(() => uris().includes('docs://notes/docs/numbers.txt'), 15_000)
      child.kill('SIGINT')
      expect(await ended).toMatchObject({ code: 0, signal: null })
    },
  )

  test('prints a line of JSON for each change of a server over HTTP, also after the server stopped and started again', async () => {
    const server = await serveOurs('mcp')
    const { url } = server.target as { readonly url: string }
    const { child, ended, lines, says } = await watch(['--url', url, 'x://r/a', '--json', '--list'])
    const told = () => lines().map((line) => JSON.parse(line))
    await server.touch('x://r/a')
    await until(() => told().some((change) => change.uri === 'x://r/a'), 15_000)
    await server.stop()
    await says(/connecting again/)
    const before = lines().length
    await server.start()
    await until(() => told().slice(before).length >= 2, 15_000)
    for (const change of told()) {
      const { time, ...rest } = change
      expect(Number.isNaN(Date.parse(time))).toBe(false)
      expect([{ uri: 'x://r/a' }, { listed: true }]).toContainEqual(rest)
    }
    child.kill('SIGINT')
    expect(await ended).toMatchObject({ code: 0, signal: null })
  })

  test('exits with 1 when the connection is lost and the server refuses a new one with 401', async () => {
    const ours = await serveOurs('mcp')
    let isRefusing = false
    const { target } = await aged(ours, (_, response) => {
      if (isRefusing) response.writeHead(401).end()
    })
    const { url } = target as { readonly url: string }
    const { ended } = await watch(['--url', url])
    isRefusing = true
    await ours.stop()
    const { code, out, err } = await ended
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(/hikidashi: .*HTTP 401/)
  })

  test('exits with 4 if no resource can be watched', async () => {
    await mkdir(join(home, 'other'), { recursive: true })
    const none = await run(['watch', join(home, 'other'), 'x://y'], { cwd: folder })
    expect(none).toMatchObject({ code: 4, out: '' })
    expect(none.err).toContain(`No changes can be reported for file://${join(home, 'other')}/, x://y.`)
    const mute = await listen(scripted(() => ({ resources: [] })))
    const unable = await run(['watch', '--url', mute], { cwd: folder })
    expect(unable).toMatchObject({ code: 4, out: '' })
    expect(unable.err).toContain('No mount reports changes.')
  })

  test('exits with 0 when its output is closed', async () => {
    const server = await serveOfficialLive()
    const { url } = server.target as { readonly url: string }
    const { child, ended } = await watch(['--url', url, 'note:a'])
    child.stdout.destroy()
    const touching = setInterval(() => void server.touch('note:a'), 50)
    expect(await ended).toMatchObject({ code: 0, signal: null })
    clearInterval(touching)
  })

  test('prints control characters in a URI as escapes', async () => {
    const server = await serveOfficialLive()
    const { url } = server.target as { readonly url: string }
    const { child, ended, lines } = await watch(['--url', url, 'note:\u001b]0;owned\u0007'])
    await server.touch('note:\u001b]0;owned\u0007')
    await until(() => lines().length > 0)
    expect(lines()).toEqual(['changed  note:\\u001b]0;owned\\u0007'])
    child.kill('SIGINT')
    await ended
  })
})
