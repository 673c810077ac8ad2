import { mkdirSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { compileIgnores } from '../../src/providers/files/ignores.ts'
import { type Running, run, start } from '../support/cli.ts'
import { useFiles } from '../support/files.ts'
import { createFolder, type Folder, listPaths } from '../support/folder.ts'

// A process, where the machine may be busy.
vi.setConfig({ testTimeout: 120_000 })

/** The most that a directory may lie below the root in these tests. */
const depth = 60
const deepest = `${'a/'.repeat(depth)}file`

/** Lines of .gitignore that take a matcher with backtracking exponential or high polynomial time. */
const hostile = [
  `${'a/**/'.repeat(14)}0`,
  `${'**/a/'.repeat(60)}0`,
  `**/${'*a*/'.repeat(40)}0`,
  `${'a*'.repeat(100)}0`,
  `${'*a'.repeat(100)}0`,
  `${'[!b]*'.repeat(60)}0`,
  `${'/**'.repeat(100)}/0`,
  `${'\\a/**/'.repeat(40)}0`,
  `${'*'.repeat(10_000)}0`,
  `${' '.repeat(100_000)}x`,
  `${'\\ '.repeat(5000)}`,
  `${'['.repeat(10_000)}`,
]

describe('a .gitignore that other matchers take very long to match', () => {
  let folder: Folder
  let server: Running | undefined
  beforeEach(() => {
    folder = createFolder()
    folder.write({ '.gitignore': `${hostile.join('\n')}\n`, [deepest]: 'x', [`a/${'a'.repeat(200)}`]: 'x', z: 'x' })
  })
  afterEach(() => {
    server?.child.kill('SIGKILL')
    folder.remove()
  })

  test('does not stop the listing, other requests or SIGTERM (PT39)', async () => {
    server = start(['serve', '.', '--http', '0'], { cwd: folder.root })
    const [, url = ''] = await server.says(/serves 2 mounts at (http:\/\/127\.0\.0\.1:\d+\/mcp)\n/)
    let isListed = false
    const listed = run(['ls', '-r', '--url', url], { cwd: folder.root }).finally(() => {
      isListed = true
    })
    let answers = 0
    do {
      const answer = await fetch(new URL('/healthz', url))
      expect(answer.status).toBe(200)
      await answer.arrayBuffer()
      answers++
    } while (!isListed)
    expect(answers).toBeGreaterThan(0)
    const { out, code } = await listed
    expect(code).toBe(0)
    expect(out).toContain(`/${deepest}\n`)
    expect(out).toMatch(/\/z\n/)
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ signal: null })
  })
})

describe('the rules of a .gitignore', () => {
  const { folder, open } = useFiles()

  test('are compiled to at most two steps of matching for each character of a line, and two more (PT39)', () => {
    for (const line of hostile)
      expect(compileIgnores(line, '', undefined).steps, line.slice(0, 30)).toBeLessThanOrEqual(2 * line.length + 2)
  })

  test('with too many wildcards hide everything in the directory of the file, nothing outside of it, and the log says so (PT39)', async () => {
    const lines = Array.from({ length: 3000 }, (_, at) => `*${at}*a*b*c`).join('\n')
    folder.write({ 'many/.gitignore': lines, 'many/x': '', 'many/deep/y': '', z: '' })
    const log = vi.fn()
    expect(await listPaths(await open({ log }))).toEqual(['z'])
    expect(log).toHaveBeenCalledWith('warn', expect.stringContaining('too many wildcards'), {
      path: 'many/.gitignore',
      limit: 32_768,
    })
  })

  test('count together with the rules of the directories above, and a directory in which they exceed the limit is hidden (PT39)', async () => {
    const lines = Array.from({ length: 1000 }, (_, at) => `*${at}*a*b*c`).join('\n')
    const base = 'in/'.repeat(4)
    for (let at = 0; at <= base.length; at += 3) {
      mkdirSync(folder.at(base.slice(0, at)), { recursive: true })
      writeFileSync(folder.at(`${base.slice(0, at)}.gitignore`), lines)
      writeFileSync(folder.at(`${base.slice(0, at)}file`), '')
    }
    const files = (await listPaths(await open())).filter((path) => path.endsWith('file'))
    expect(files).toEqual(['file', 'in/file', 'in/in/file'])
  })

  test('without wildcards, or for an ending such as *.log, hide their files without any step of matching (PT39)', async () => {
    const lines = Array.from({ length: 20_000 }, (_, at) => `name${at}\n/path/${at}\n*.ending${at}`).join('\n')
    folder.write({
      '.gitignore': lines,
      name7: '',
      name: '',
      'path/8': '',
      'path/x': '',
      'a.ending9': '',
      'a.ending': '',
    })
    expect(compileIgnores(lines, '', undefined).steps).toBe(0)
    expect(await listPaths(await open())).toEqual(['.gitignore', 'a.ending', 'name', 'path/x'])
  })
})
