import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
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
])('a mount of %s that is a single resource is that resource', (_, options) => {
  const ask = async (...words: readonly string[]) => {
    const { code, out, err } = await runHere([...words, ...options], { cwd: home })
    expect(code, err).toBe(0)
    return out
  }

  test('in ls', async () => {
    const listed = JSON.parse(await ask('ls', '--json')) as { uri: string; mimeType: string; size?: number }[]
    const of = (uri: string) => listed.find((one) => one.uri === uri)
    expect(of('note://hello')).toMatchObject({ mimeType: 'text/markdown', size: 14, title: 'Greeting' })
    expect(of('note://many')).toMatchObject({ mimeType: 'inode/directory' })
    expect(await ask('ls', 'note://hello')).toBe('note://hello\n')
    expect(await ask('ls', 'note://many')).toBe('note://many/a.md\n')
  })

  test('in tree', async () => {
    const tree = await ask('tree', '--long')
    expect(tree).toMatch(/14 B .*text\/markdown +note:\/\/hello {2}Greeting\n/)
    expect(await ask('tree', 'note://hello')).toBe('note://hello  Greeting\n\n0 directories, 1 resource\n')
  })

  test('in stat', async () => {
    const facts = JSON.parse(await ask('stat', 'note://hello', '--json'))
    expect(facts).toMatchObject({ uri: 'note://hello', mimeType: 'text/markdown', size: 14 })
    expect(facts).not.toHaveProperty('children')
    expect(JSON.parse(await ask('stat', 'note://many', '--json'))).toMatchObject({ mimeType: 'inode/directory' })
  })
})
