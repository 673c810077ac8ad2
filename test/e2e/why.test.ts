import { execFileSync } from 'node:child_process'
import { linkSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHere } from '../support/cli-here.ts'

const base = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-why-')))
const home = join(base, 'home')
const files: Readonly<Record<string, string | Uint8Array>> = {
  'home/docs/.gitignore': '# what is not kept\n\n*.log\n/out/\n',
  'home/docs/fine.md': 'fine',
  'home/docs/a.log': 'log',
  'home/docs/out/b.md': 'out',
  'home/docs/.env': 'A=b',
  'home/docs/id_rsa': 'key',
  'home/docs/node_modules/p/i.js': 'tool',
  'home/docs/draft/c.md': 'draft',
  'home/docs/secret/plan.md': 'plan',
  'home/docs/hard.md': 'hard',
  'home/docs/app.toml': 'a = 1',
  // Two bytes beyond ASCII that no encoding makes a likely text of.
  'home/docs/odd.txt': Buffer.from('a\xe9\xfcb\xf0c', 'latin1'),
  'outside.md': 'CANARY',
}
const links = {
  'in.md': 'fine.md',
  'far.md': '../../outside.md',
  'gone.md': 'none',
  'log.md': 'a.log',
  'p.md': 'secret/plan.md',
}

beforeAll(() => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(base, path)), { recursive: true })
    writeFileSync(join(base, path), text)
  }
  for (const [name, to] of Object.entries(links)) symlinkSync(to, join(home, 'docs', name))
  linkSync(join(home, 'docs/hard.md'), join(base, 'twin.md'))
  execFileSync('mkfifo', [join(home, 'docs/pipe')])
  const access = [{ allow: ['*'] }, { deny: ['guest'], match: 'secret/**' }]
  const config = {
    mounts: {
      'docs://notes': { provider: 'files', root: 'docs', exclude: ['draft/'], access },
      'config://notes': { provider: 'settings', root: 'docs' },
    },
    roles: ['guest'],
  }
  writeFileSync(join(home, 'hikidashi.json'), JSON.stringify(config))
})
afterAll(() => rmSync(base, { recursive: true }))

const why = (...words: readonly string[]) => runHere(['why', ...words], { cwd: home })

describe('hikidashi why', () => {
  test.each([
    ['docs/a.log', 'gitignore', 'left out by .gitignore:3 `*.log`'],
    ['docs/out/b.md', 'gitignore', 'out/ is not served: left out by .gitignore:4 `/out/`'],
    ['docs/.env', 'secret-name', 'files of this name commonly hold secrets'],
    ['docs/id_rsa', 'secret-name', 'files of this name commonly hold secrets'],
    ['docs/node_modules/p/i.js', 'tools', 'node_modules/ is not served: left out by default'],
    ['docs/draft/c.md', 'exclude', 'draft/ is not served: left out by "exclude": `draft/`'],
    ['docs/far.md', 'link-outside', `leads out of the folder: ${join(base, 'outside.md')}`],
    ['docs/gone.md', 'link-broken', 'leads to nothing'],
    ['docs/log.md', 'link-target', 'a.log (left out by .gitignore:3 `*.log`)'],
    ['docs/hard.md', 'hard-link', 'a second name'],
    ['docs/pipe', 'special-file', 'a device, a socket or a pipe'],
    ['docs/none.md', 'missing', 'nothing is there'],
    ['docs/secret/plan.md', 'access-rule', 'access rule 2 denies it: {"deny":["guest"],"match":"secret/**"}'],
    ['docs/p.md', 'provider', 'the access rules of the mount deny the path that a link leads to'],
  ])('says of %s that it is left out: %s', async (path, reason, words) => {
    const { out } = await why(path, '--json')
    const { answers } = JSON.parse(out) as {
      answers: { mount: string; reason: string; why: string; served: boolean }[]
    }
    const answer = answers.find(({ mount }) => mount === 'docs://notes')
    expect(answer).toMatchObject({ reason, served: false })
    expect(answer?.why).toContain(words)
  })

  test('answers for each mount whose folder it lies in, and ends with 0 where one serves it', async () => {
    const dotenv = await why('docs/.env')
    expect(dotenv.code, dotenv.err).toBe(0)
    expect(dotenv.out).toMatch(/left out {2}docs:\/\/notes\/\.env\n.*\nserved {4}config:\/\/notes\/\.env/)
    const fine = await why('docs/fine.md')
    expect(fine.out).toMatch(/^served {4}docs:\/\/notes\/fine\.md\nleft out {2}config:\/\/notes\/fine\.md\n.*formats/)
    expect((await why('docs/in.md')).out).toContain('served    docs://notes/in.md')
    expect((await why('docs/secret/plan.md', '--as', 'boss')).out).toContain('served    docs://notes/secret/plan.md')
    expect((await why('docs/odd.txt')).out).toContain('served as bytes: its encoding is not known')
    const log = await why('docs://notes/a.log')
    expect([log.code, log.err.trim()]).toEqual([4, 'hikidashi: No mount serves it.'])
    const far = await why(join(base, 'outside.md'))
    expect(far.code).toBe(1)
    expect(far.err).toContain('No folder of a mount contains')
  })
})

test('hikidashi check counts what is left out by each reason', async () => {
  const { out, err } = await runHere(['check'], { cwd: home })
  const line = /docs:\/\/notes.*\n.*left out: (.*)\n/
    .exec(out)?.[1]
    ?.split(/, (?=\d)/)
    .sort()
  expect(line).toEqual([
    '1 by "exclude"',
    '1 hard link',
    '1 link that leads outside',
    '1 link that leads to nothing',
    '1 link to something that is left out',
    '1 of version control, tools or editors',
    '1 special file (a device or pipe)',
    '2 by .gitignore',
    '2 with names that secrets have',
  ])
  expect(err).toContain('hikidashi why PATH')
  expect(out).toContain('served as bytes: 1 text in an encoding that is not known (odd.txt)')
  const { mounts } = JSON.parse((await runHere(['check', '--json'], { cwd: home })).out) as {
    mounts: { unknownEncodings?: string[]; leftOut?: { counts: Record<string, number>; complete: boolean } }[]
  }
  expect(mounts[0]?.unknownEncodings).toEqual(['odd.txt'])
  expect(mounts[0]?.leftOut).toMatchObject({ complete: true, counts: { gitignore: 2, 'hard-link': 1 } })
})

test('hikidashi access check says when the mount leaves a file out, whoever asks', async () => {
  const { code, out, err } = await runHere(['access', 'check', 'docs://notes/a.log'], { cwd: home })
  expect(code).toBe(4)
  expect(out).toContain('may see docs://notes/a.log, as far as the access rules go.')
  expect(out).toContain('source the mount leaves it out: left out by .gitignore:3 `*.log`')
  expect(err).toContain('The mount leaves it out for every caller.')
  const json = await runHere(['access', 'check', 'docs://notes/far.md', '--json'], { cwd: home })
  expect(JSON.parse(json.out)).toMatchObject({ allowed: true, leftOut: { reason: 'link-outside' } })
})

test('links between folders make no endless tree', async () => {
  const ring = join(base, 'ring')
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  for (const name of names) {
    mkdirSync(join(ring, name), { recursive: true })
    writeFileSync(join(ring, name, 'x.md'), name)
    for (const other of names) if (other !== name) symlinkSync(`../${other}`, join(ring, name, other))
  }
  const { code, out } = await runHere(['ls', '-r', '--only', 'files'], { cwd: ring })
  expect(code).toBe(0)
  const depths = out
    .trim()
    .split('\n')
    .map((line) => line.slice(line.indexOf('/ring/')).split('/').length)
  expect(Math.max(...depths) - Math.min(...depths)).toBe(4)
})
