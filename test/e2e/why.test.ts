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
    ['docs/gone.md', 'link-broken', 'to something that does not exist'],
    ['docs/log.md', 'link-target', 'a.log (left out by .gitignore:3 `*.log`)'],
    ['docs/hard.md', 'hard-link', 'a second name'],
    ['docs/pipe', 'special-file', 'a device, a socket or a pipe'],
    ['docs/none.md', 'missing', 'it does not exist'],
    ['docs/secret/plan.md', 'access-rule', 'access rule 2 denies it: {"deny":["guest"],"match":"secret/**"}'],
    ['docs/p.md', 'provider', 'the access rules of the mount deny the path that a link leads to'],
  ])('says that %s is left out: %s', async (path, reason, words) => {
    const { out } = await why(path, '--json')
    const { answers } = JSON.parse(out) as {
      answers: { mount: string; reason: string; why: string; served: boolean }[]
    }
    const answer = answers.find(({ mount }) => mount === 'docs://notes')
    expect(answer).toMatchObject({ reason, served: false })
    expect(answer?.why).toContain(words)
  })

  test('answers for each mount whose folder contains the path, and exits with 0 if one serves it', async () => {
    const dotenv = await why('docs/.env')
    expect(dotenv.code, dotenv.err).toBe(0)
    expect(dotenv.out).toMatch(/left out {2}docs:\/\/notes\/\.env\n.*\nserved {4}config:\/\/notes\/\.env/)
    const fine = await why('docs/fine.md')
    expect(fine.out).toMatch(/^served {4}docs:\/\/notes\/fine\.md\nleft out {2}config:\/\/notes\/fine\.md\n.*formats/)
    expect((await why('docs/in.md')).out).toContain('served    docs://notes/in.md')
    expect((await why('docs/secret/plan.md', '--as', 'boss')).out).toContain('served    docs://notes/secret/plan.md')
    expect((await why('docs/odd.txt')).out).toContain('served as bytes: its encoding is not known')
    const log = await why('docs://notes/a.log')
    expect([log.code, log.err.trim()]).toEqual([4, 'hikidashi: No mount serves the file.'])
    const far = await why(join(base, 'outside.md'))
    expect(far.code).toBe(1)
    expect(far.err).toContain('is neither in a mount nor in the folder of one')
  })
})

test('hikidashi check counts the files that are left out for each reason', async () => {
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
    '1 special file (a device, socket or pipe)',
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

test('hikidashi access check says that the mount leaves a file out, for any principal', async () => {
  const { code, out, err } = await runHere(['access', 'check', 'docs://notes/a.log'], { cwd: home })
  expect(code).toBe(4)
  expect(out).toContain('may see docs://notes/a.log, as far as the access rules go.')
  expect(out).toContain('source the mount leaves it out: left out by .gitignore:3 `*.log`')
  expect(err).toContain('The mount leaves this path out for every caller.')
  const json = await runHere(['access', 'check', 'docs://notes/far.md', '--json'], { cwd: home })
  expect(JSON.parse(json.out)).toMatchObject({ allowed: true, leftOut: { reason: 'link-outside' } })
})

test('hikidashi ls -r lists folders that link to each other in a ring, and ends', async () => {
  const ring = join(base, 'ring')
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  for (const [at, name] of names.entries()) {
    mkdirSync(join(ring, name), { recursive: true })
    writeFileSync(join(ring, name, 'x.md'), name)
    // In both directions: a path can go around the ring, and back and forth.
    for (const other of [names.at(at - 1), names[(at + 1) % names.length]])
      if (other !== undefined) symlinkSync(`../${other}`, join(ring, name, other))
  }
  const { code, out } = await runHere(['ls', '-r', '--only', 'files'], { cwd: ring })
  expect(code).toBe(0)
  const depths = out
    .trim()
    .split('\n')
    .map((line) => line.slice(line.indexOf('/ring/')).split('/').length)
  expect(Math.max(...depths) - Math.min(...depths)).toBe(4)
})

describe('for rules that do not match the intended paths,', () => {
  const place = join(base, 'missed')
  const names = [
    ...['app/[slug]/page.md', 'app/s/page.md', 'api/[...all]/x.md', 'routes/{a,b}/y.md', 'my notes/n.md'],
    ...['Private/p.md', 'folder/f.md', 'ＡＢＣ/w.md', 'kept/k.md', 'ignored/i.md', 'cafe\u0301/c.md', 'gone\u0301.log'],
  ]
  const mount = (rest: object) => ({ provider: 'files', root: 'site', access: [{ allow: ['*'] }], ...rest })
  const deny = (...match: readonly string[]) => mount({ access: [{ allow: ['*'] }, { deny: ['guest'], match }] })
  type Misses = readonly {
    rule: string
    glob: string
    matchesNothing: boolean
    near?: { path: string; glob?: string }
  }[]

  const checked = async (config: object) => {
    const file = join(place, 'hikidashi.json')
    writeFileSync(file, JSON.stringify({ mounts: { 'x://site': config } }))
    const { code, out, err } = await runHere(['check', '--json'], { cwd: place })
    expect(code, err).toBe(0)
    return (JSON.parse(out) as { mounts: { ruleMisses?: Misses }[] }).mounts[0]?.ruleMisses ?? []
  }

  beforeAll(() => {
    for (const name of names) {
      mkdirSync(dirname(join(place, 'site', name)), { recursive: true })
      writeFileSync(join(place, 'site', name), name)
    }
    writeFileSync(join(place, 'site/.gitignore'), '/ignored/\n*.log\n')
    symlinkSync('kept', join(place, 'site/link'))
  })

  test.each([
    ['app/[slug]/**', false, 'app/[slug]/page.md', 'app/\\[slug\\]/**'],
    ['api/[...all]/**', true, 'api/[...all]/x.md', 'api/\\[...all\\]/**'],
    ['routes/{a,b}/**', true, 'routes/{a,b}/y.md', 'routes/\\{a,b\\}/**'],
    ['kept\\**', true, 'kept/k.md', 'kept/**'],
    ['my%20notes/**', true, 'my notes/n.md', 'my notes/**'],
    ['kept/** ', true, 'kept/k.md', 'kept/**'],
    ['folder', true, 'folder/f.md', 'folder/**'],
    ['site/folder/**', true, 'folder/f.md', 'folder/**'],
    ['/site/folder/**', true, 'folder/f.md', 'folder/**'],
    ['private/**', true, 'Private/p.md', undefined],
    ['ABC/**', true, 'ＡＢＣ/w.md', undefined],
    ['nowhere/**', true, undefined, undefined],
  ])(
    'check reports the access rule %j, which misses a path or matches nothing',
    async (glob, matchesNothing, path, written) => {
      const near = path === undefined ? undefined : { path, ...(written === undefined ? {} : { glob: written }) }
      const expected = { rule: 'access[1].match', glob, matchesNothing, ...(near === undefined ? {} : { near }) }
      expect(await checked(deny(glob))).toEqual([expected])
      if (written !== undefined) expect(await checked(deny(written))).toEqual([])
    },
  )

  test('check reports no rule that matches a path, or that is about a folder that is left out', async () => {
    const globs = ['*.md', 'ignored/**', 'ignored/i.md', 'link/k.md', 'caf\u00e9/**', 'app/\\[slug\\]/**', '=tools/x']
    expect(await checked(deny(...globs))).toEqual([])
    expect(await checked(mount({ exclude: ['folder', 'KEPT/', 'app/s/'], include: ['folder', '*.md'] }))).toEqual([])
  })

  test('check reports the globs of "include", "exclude" and "rules" too', async () => {
    const rules = [{ match: ['kept/*', 'api/[...all]/*'], priority: 1 }]
    const found = await checked(mount({ exclude: ['api/[...all]/', 'none/'], include: ['**', 'docs/'], rules }))
    expect(found.map(({ rule, near }) => [rule, near?.path])).toEqual(
      expect.arrayContaining([
        ['exclude[0]', 'api/[...all]/'],
        ['exclude[1]', undefined],
        ['include[1]', undefined],
        ['rules[0].match', 'api/[...all]/x.md'],
      ]),
    )
    expect(found).toHaveLength(4)
    const { out } = await runHere(['check'], { cwd: place })
    expect(out).toContain(
      'exclude[0] "api/[...all]/" matches nothing, and just misses api/[...all]/: to match it, write "api/\\\\[...all\\\\]/"',
    )
    expect(out).toContain('exclude[1] "none/" matches nothing\n')
  })

  test('check reports the listed path that a rule just misses in a source without a folder', async () => {
    const resources = { 'a/[id]/x.md': { text: 'x' } }
    const access = [{ allow: ['*'] }, { deny: ['guest'], match: ['a/[id]/**', 'b/**'] }]
    expect(await checked({ provider: 'inline', resources, access })).toEqual([
      expect.objectContaining({ near: { path: 'a/[id]/x.md', glob: 'a/\\[id\\]/**' } }),
    ])
  })

  test('why reports the rule that just misses a path', async () => {
    await checked(deny('app/[slug]/**'))
    const { out } = await runHere(['why', 'site/app/[slug]/page.md'], { cwd: place })
    expect(out).toMatch(
      /^served .*\n.*served; access\[1\]\.match "app\/\[slug\]\/\*\*" just misses app\/\[slug\]\/page\.md/,
    )
    expect((await runHere(['why', 'site/app/s/page.md'], { cwd: place })).out).not.toContain('misses')
  })

  test('why finds the listed name of a path in another Unicode composition', async () => {
    await checked(deny('nowhere/**'))
    const served = await runHere(['why', 'site/caf\u00e9/c.md'], { cwd: place })
    expect(served.out).toBe('served    x://site/cafe%CC%81/c.md\n')
    const left = JSON.parse((await runHere(['why', 'site/gon\u00e9.log', '--json'], { cwd: place })).out)
    expect(left.answers[0]).toMatchObject({ reason: 'gitignore' })
  })
})
