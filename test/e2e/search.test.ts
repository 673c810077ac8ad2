import { execFileSync } from 'node:child_process'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import iconv from 'iconv-lite'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { eventually } from '../support/authorized.ts'
import { runHere as run } from '../support/cli-here.ts'
import { requires } from '../support/require.ts'
import type { Folder, Searcher, Served } from '../support/searching.ts'
import { docs, indexed, overHttp, overStdio, searchAddress, searchFolder, serveSearch } from '../support/searching.ts'

// Several processes: slow where the machine is busy.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function folderOf(files: Readonly<Record<string, string>>): Promise<Folder> {
  const folder = await searchFolder(files)
  ends.push(folder.remove)
  return folder
}

async function serve(home: string): Promise<{ readonly server: Served; readonly boss: Searcher }> {
  const server = await serveSearch(home)
  ends.push(() => server.stop('SIGKILL'))
  const boss = await overHttp(server.url, await server.token('boss'))
  ends.push(() => boss.close())
  return { server, boss }
}

const many = (count: number, name = 'note') =>
  Object.fromEntries(
    Array.from({ length: count }, (_, at) => [
      `open/${name}-${at}.md`,
      `# ${name} ${at}\n\n${`The ${name} number n${at} is about anchors and boats. `.repeat(20)}\n`,
    ]),
  )

const found = (searcher: Searcher, query: string, holds: (paths: readonly string[]) => boolean) =>
  eventually(() => searcher.paths(query), holds)

describe('a served search index', () => {
  test('follows every change, over both transports, whichever process feeds it', async () => {
    const folder = await folderOf({
      'open/a.md': '# Harbour\n\nabout anchors\n',
      'open/設計.md': '# 設計\n\n引き出しの設計\n',
    })
    const { boss } = await serve(folder.home)
    const stdio = await overStdio(folder.home, 'reader')
    ends.push(() => stdio.close())
    await indexed(boss)
    for (const searcher of [boss, stdio]) {
      expect(await searcher.paths('anchors')).toEqual(['open/a.md'])
      const { hits } = await searcher.find('設計')
      expect(hits.map(({ document }) => document)).toEqual([`${docs}/open/%E8%A8%AD%E8%A8%88.md`])
      expect(await searcher.read(hits[0]?.uri ?? '')).toContain('設計')
    }
    await folder.write({ 'open/a.md': '# Harbour\n\nabout rudders\n', 'open/b.md': 'about sextants\n' })
    for (const searcher of [boss, stdio]) {
      await found(searcher, 'rudders', (paths) => paths.length === 1)
      await found(searcher, 'sextants', (paths) => paths.length === 1)
      expect(await searcher.paths('anchors')).toEqual([])
    }
    await rename(join(folder.home, 'docs/open'), join(folder.home, 'docs/closed'))
    await found(boss, 'sextants', ([path]) => path === 'closed/b.md')
    await found(stdio, 'sextants', (paths) => paths.length === 0)
  })

  test('is complete and current after its process was killed during indexing, and does not start from the beginning', async () => {
    const files = many(800)
    const folder = await folderOf(files)
    const { server, boss } = await serve(folder.home)
    await eventually(boss.status, (status) => (status?.mounts[0]?.indexed ?? 0) > 100)
    await server.stop('SIGKILL')
    await rm(join(folder.home, 'docs/open/note-0.md'))
    await folder.write({ 'open/note-1.md': 'about lanterns\n' })
    const { boss: again } = await serve(folder.home)
    await indexed(again)
    const status = await again.status()
    expect(status?.documents).toBe(799)
    expect(status?.mounts[0]?.indexed).toBeLessThan(750)
    expect(await again.paths('n0')).toEqual([])
    expect(await again.paths('lanterns')).toEqual(['open/note-1.md'])
    for (const number of [2, 400, 799]) expect(await again.paths(`n${number}`)).toEqual([`open/note-${number}.md`])
  })

  test('drops a removed mount, and is built again after its store is lost', async () => {
    const folder = await folderOf({ 'open/a.md': 'about anchors\n' })
    await mkdir(join(folder.home, 'more'))
    await writeFile(join(folder.home, 'more/b.md'), 'about bollards\n')
    const mounts = (over: readonly string[]) => ({
      mounts: {
        [docs]: { provider: 'files', root: 'docs' },
        'docs://more': { provider: 'files', root: 'more' },
        [searchAddress]: { provider: 'search', over },
      },
    })
    await folder.configure(mounts([docs, 'docs://more']))
    const first = await serve(folder.home)
    await indexed(first.boss)
    expect(await first.boss.status()).toMatchObject({ documents: 2 })
    await first.server.stop()
    await folder.configure(mounts([docs]))
    const second = await serve(folder.home)
    await indexed(second.boss)
    expect(await second.boss.status()).toMatchObject({ documents: 1 })
    expect(await second.boss.paths('bollards')).toEqual([])
    await second.server.stop()
    for (const end of ['', '-wal', '-shm']) await rm(join(folder.home, `store.sqlite${end}`), { force: true })
    const third = await serve(folder.home)
    await indexed(third.boss)
    expect(await third.boss.paths('anchors')).toEqual(['open/a.md'])
  })
})

/** Whether small disks can be made here: by root, where that is allowed to mount them. */
function canMount(): boolean {
  try {
    execFileSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

requires(
  'mount',
  process.platform === 'linux' && canMount(),
  'only root can mount a small disk',
)('on a small disk,', () => {
  test('a search index reports that the disk is full, and continues once there is room', async () => {
    const folder = await folderOf(many(800))
    const disk = join(folder.home, 'disk')
    await mkdir(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk])
    ends.push(() => execFileSync('umount', ['-l', disk]))
    await folder.configure({ store: { sqlite: 'disk/store.sqlite' } })
    const { boss } = await serve(folder.home)
    await eventually(boss.status, (status) => status?.mounts[0]?.state === 'unavailable')
    execFileSync('mount', ['-o', 'remount,size=200m', disk])
    await indexed(boss)
    expect(await boss.status()).toMatchObject({ documents: 800 })
    expect(await boss.paths('n799')).toEqual(['open/note-799.md'])
  })
})

describe('hikidashi search and status', () => {
  const words = (...more: readonly string[]) => [...more, '--config', 'reader.json']

  test('index the folder first, and print the visible hits without control characters; a wrong option is refused', async () => {
    const { home } = await folderOf({
      'open/guide.md': '# Guide\n\n## Anchors\n\nHow to drop an anchor \u001b[31mslowly\u001b[0m.\n',
      'hidden/plan.md': '# Anchor\n\nanchor\n',
    })
    const plain = await run(words('search', 'drop', 'anchor'), { cwd: home })
    expect(plain).toMatchObject({ code: 0 })
    expect(plain.out).toMatch(/^docs:\/\/all\/open\/guide\.md\?lines=\d+-\d+\n {2}Guide > Anchors\n/)
    expect(plain.out).toContain('How to drop an anchor')
    expect(plain.out).not.toContain('\u001b')
    const json = await run(words('search', 'anchor', '--json', '--limit', '5', '--mime', 'text/*'), { cwd: home })
    expect(JSON.parse(json.out)).toMatchObject({
      query: 'anchor',
      total: 1,
      hits: [{ document: `${docs}/open/guide.md` }],
    })
    const none = await run(words('search', 'zyzzyvas'), { cwd: home })
    expect(none).toMatchObject({ code: 0, out: '' })
    expect(none.err).toContain('Nothing was found.')
    const wrong = await run(words('search', 'anchor', '--since', 'yesterday'), { cwd: home })
    expect(wrong).toMatchObject({ code: 2, out: '' })
    expect(wrong.err).toContain('since must be a date')
    const nowhere = await run(words('search', 'anchor', '--at', 'search://none'), { cwd: home })
    expect(nowhere.err).toContain(`There is one at: ${searchAddress}.`)
    const status = await run(words('status'), { cwd: home })
    expect(status).toMatchObject({ code: 0 })
    expect(status.out).toContain('no running server updates it')
  })

  test('print many hits without a warning of Node', async () => {
    const notes = Array.from({ length: 15 }, (_, at) => [`open/${at}.md`, `# Note ${at}\n\nAn anchor.\n`])
    const { home } = await folderOf(Object.fromEntries(notes) as Record<string, string>)
    const found = await run(words('search', 'anchor', '--limit', '15', '--json'), { cwd: home })
    expect((JSON.parse(found.out) as { readonly hits: readonly unknown[] }).hits).toHaveLength(15)
    expect(found.err).not.toContain('Warning')
  })

  test('use an index that is seconds old unchanged, and compare every file with --fresh', async () => {
    const { home } = await folderOf({ 'open/a.md': '# Harbour\n\nabout anchors\n' })
    const words = ['search', 'bollards', '--config', 'boss.json']
    const first = await run(words, { cwd: home })
    expect(first.err).not.toContain('The index is')
    await writeFile(join(home, 'docs/open/b.md'), 'about bollards\n')
    const trusted = await run(words, { cwd: home })
    expect(trusted).toMatchObject({ code: 0, out: '' })
    expect(trusted.err).toMatch(/The index is \d+ s old\. To compare it with every file first: --fresh/)
    expect(trusted.err).not.toContain('Nothing is being indexed')
    const fresh = await run([...words, '--fresh'], { cwd: home })
    expect(fresh.out).toContain('open/b.md')
    expect(fresh.err).not.toContain('The index is')
    // Another way to read is another index.
    const config = JSON.parse(await readFile(join(home, 'boss.json'), 'utf8'))
    config.mounts[docs].redact = 'mask'
    await writeFile(join(home, 'boss.json'), JSON.stringify(config))
    expect((await run(words, { cwd: home })).err).not.toContain('The index is')
  })

  test('index a folder again after another language is detected', async () => {
    const { home } = await folderOf({ 'open/a.md': 'about anchors\n' })
    const cwd = join(home, 'docs/open')
    const env = { XDG_STATE_HOME: join(home, 'state') }
    const uris = async () => {
      const { out, err } = await run(['search', '東京', '--fresh', '--json'], { cwd, env })
      expect(err).not.toContain('hikidashi:')
      return (JSON.parse(out) as { hits: { uri: string }[] }).hits.map(({ uri }) => uri.slice(uri.lastIndexOf('/') + 1))
    }
    // Two words in an older encoding, of which the language is not known.
    await writeFile(join(cwd, 'short.txt'), iconv.encode('東京', 'euc-jp'))
    expect(await uris()).toEqual([])
    await writeFile(
      join(cwd, 'long.txt'),
      iconv.encode('データベースへの接続に失敗しました。設定を確認してください。'.repeat(9), 'euc-jp'),
    )
    expect((await uris()).map((name) => name.split('?')[0])).toEqual(['short.txt'])
  })

  test('report the index of a running server, by its configuration or its address', async () => {
    const { home } = await folderOf({ 'open/guide.md': '# Guide\n\nanchors\n' })
    const { server, boss } = await serve(home)
    await indexed(boss)
    const here = await run(['status', '--config', 'boss.json', '--json'], { cwd: home })
    const token = await server.token('boss')
    const away = ['--url', server.url, '--header', `Authorization: Bearer ${token}`]
    const there = await run(['status', ...away, '--json'], { cwd: home })
    for (const { out } of [here, there])
      expect(JSON.parse(out)).toMatchObject({
        mounts: [{ address: docs, changes: 'watched' }, { address: searchAddress }],
        searches: [
          {
            address: searchAddress,
            indexing: 'running',
            documents: 1,
            mounts: [{ address: docs, state: 'current', looked: 1, of: 1, changes: 'watched' }],
          },
        ],
      })
    const told = await run(['status', ...away], { cwd: home })
    expect(told.out).toMatch(/^docs:\/\/all +watched\n/)
    expect(told.out).toMatch(
      /search:\/\/all: 1 document, \d+ passages?\n {2}docs:\/\/all +indexed 1 of 1 +since \d{4}-/,
    )
    const found = await run(['search', 'anchors', ...away], { cwd: home })
    expect(found.out).toContain(`${docs}/open/guide.md?lines=`)
    const elsewhere = await run(['search', 'anchors', '--mount', 'docs://al', ...away], { cwd: home })
    expect(elsewhere.err).toContain('The mount docs://al does not exist. To list the mounts: hikidashi status')
    const slashed = await run(['search', 'anchors', '--mount', 'docs://all/', ...away], { cwd: home })
    expect(slashed.out).toContain(`${docs}/open/guide.md?lines=`)
    const nothing = await run(['search', 'x', '--config', 'none.json'], { cwd: home })
    expect(nothing.code).toBe(1)
  })
})
