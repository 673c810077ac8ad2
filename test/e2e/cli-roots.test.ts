import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { main } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'

const home = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-roots-')))
beforeAll(() => {
  const mounts = {
    'note://hello': { provider: 'inline', title: 'Greeting', text: '# Hello\n\nworld', mimeType: 'text/markdown' },
    'note://many': { provider: 'inline', resources: { 'a.md': { text: 'x' } } },
  }
  writeFileSync(join(home, 'hikidashi.json'), JSON.stringify({ mounts }))
})
afterAll(() => rmSync(home, { recursive: true }))

describe.each([
  ['a configuration', ['--config', 'hikidashi.json']],
  ['a server', ['--command', `${process.execPath} ${main} serve --config hikidashi.json --stdio`]],
])('a mount of %s with a single resource', (_, options) => {
  const ask = async (...words: readonly string[]) => {
    const { code, out, err } = await runHere([...words, ...options], { cwd: home })
    expect(code, err).toBe(0)
    return out
  }

  test('is listed by ls as that resource', async () => {
    const listed = JSON.parse(await ask('ls', '--json')) as { uri: string; mimeType: string; size?: number }[]
    const of = (uri: string) => listed.find((one) => one.uri === uri)
    expect(of('note://hello')).toMatchObject({ mimeType: 'text/markdown', size: 14, title: 'Greeting' })
    expect(of('note://many')).toMatchObject({ mimeType: 'inode/directory' })
    expect(await ask('ls', 'note://hello')).toBe('note://hello\n')
    expect(await ask('ls', 'note://many')).toBe('note://many/a.md\n')
  })

  test('is shown by tree as that resource', async () => {
    const tree = await ask('tree', '--long')
    expect(tree).toMatch(/14 B .*text\/markdown +note:\/\/hello {2}Greeting\n/)
    expect(await ask('tree', 'note://hello')).toBe('note://hello  Greeting\n\n0 directories, 1 resource\n')
  })

  test('is described by stat as that resource', async () => {
    const facts = JSON.parse(await ask('stat', 'note://hello', '--json'))
    expect(facts).toMatchObject({ uri: 'note://hello', mimeType: 'text/markdown', size: 14 })
    expect(facts).not.toHaveProperty('children')
    expect(JSON.parse(await ask('stat', 'note://many', '--json'))).toMatchObject({ mimeType: 'inode/directory' })
  })
})

test('with --only files, a folder is listed by its files, although it has a configuration', async () => {
  const folder = join(home, 'configured')
  mkdirSync(folder)
  writeFileSync(join(folder, 'hikidashi.json'), '{ "mounts": { "note://a": { "provider": "inline", "text": "x" } } }')
  const listed = async (...words: readonly string[]) => (await runHere(['ls', '-r', ...words], { cwd: folder })).out
  expect(await listed()).toBe('note://a\n')
  expect(await listed('--only', 'files')).toBe(`file://${folder}/hikidashi.json\n`)
})

describe('a folder behind a symbolic link', () => {
  const [real, link] = [join(home, 'real'), join(home, 'link')]
  beforeAll(() => {
    mkdirSync(join(real, 'sub'), { recursive: true })
    writeFileSync(join(real, 'sub', 'a.md'), 'the text\n')
    symlinkSync(real, link)
    const mounts = { [`file://${link}`]: { provider: 'files', root: link } }
    writeFileSync(join(home, 'linked.json'), JSON.stringify({ mounts }))
  })

  test.each([
    ['served by its link', ['serve', link]],
    ['served by its real path from within the link', ['serve', '.']],
    ['mounted by a configuration that names the link', ['serve', '--config', join(home, 'linked.json')]],
  ])('%s is read at both of its paths', async (_, words) => {
    const options = ['--command', `${process.execPath} ${main} ${words.join(' ')} --stdio`]
    const env = words[1] === '.' ? { PWD: link } : {}
    for (const folder of [link, real]) {
      const uri = `file://${folder}/sub/a.md`
      const read = await runHere(['read', uri, ...options], { cwd: link, env })
      expect([read.out, read.code], `${uri}: ${read.err}`).toEqual(['the text\n', 0])
      const listed = await runHere(['ls', `file://${folder}/sub/`, ...options], { cwd: link, env })
      expect([listed.out.includes('a.md'), listed.code], listed.err).toEqual([true, 0])
    }
  })

  test('is read by both of its paths on the command line', async () => {
    for (const path of [join(link, 'sub/a.md'), join(real, 'sub/a.md')])
      for (const cwd of [link, real])
        expect((await runHere(['read', path], { cwd })).out, `${path} in ${cwd}`).toBe('the text\n')
  })
})
