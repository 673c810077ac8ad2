import { execFileSync } from 'node:child_process'
import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { main, writeNotes } from '../support/cli.ts'
import { requires } from '../support/require.ts'
import { openPty, type Pty } from '../support/tui.ts'

const tui = `'${process.execPath}' '${main}' tui --only files`
const evil = 'first\u001b]0;stolen\u0007 \u001b[6n\u001b[2J\u009b5n \u202eright\u200b\u{e0041}\n'

function hasScript(): boolean {
  try {
    return (
      process.platform === 'linux' && /util-linux/.test(execFileSync('script', ['--version'], { encoding: 'utf8' }))
    )
  } catch {
    return false
  }
}

requires(
  'script',
  hasScript(),
  'there is no script of util-linux',
)('a terminal', () => {
  let home = ''
  let folder = ''
  let pty: Pty
  let title = ''
  const run = (line: string) => pty.press(`clear; ${line}; echo "ended $?"\r`)
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'hikidashi-tui-'))
    folder = await writeNotes(home)
    await writeFile(join(folder, 'evil.txt'), evil)
    await mkdir(join(folder, '👨‍👩‍👧 家族'))
    await writeFile(
      join(folder, '👨‍👩‍👧 家族', 'メモ.md'),
      '# 見出し\n\n全角の長い行を折り返す。全角の長い行を折り返す。\n',
    )
  })
  beforeEach(async () => {
    // The shell is what suspends, resumes, and finds the terminal as it was.
    pty = openPty('exec bash --norc --noprofile -i', { cwd: folder, columns: 70, rows: 14, env: { PS1: '$ ' } })
    pty.terminal.onTitleChange((text) => {
      title = text
    })
    await pty.until(/[$#]\s*$/)
  })
  afterEach(() => pty.close())
  afterAll(async () => {
    await rm(home, { recursive: true, force: true })
  })

  test('shows the tree, previews with wide characters in their places, and gives the screen back', async () => {
    run(tui)
    await pty.until(/家族\//)
    expect(pty.terminal.buffer.active.type).toBe('alternate')
    pty.press('\u001b[F\u001b[C')
    await pty.until(/メモ\.md/)
    pty.press('j')
    const screen = await pty.until(/折り返す/)
    // However this terminal draws the family, what is behind it is in its column.
    const { active } = pty.terminal.buffer
    const columns = Array.from({ length: 12 }, (_, row) =>
      active
        .getLine(row + 1)
        ?.getCell(28)
        ?.getChars(),
    )
    expect(new Set(columns)).toEqual(new Set(['│']))
    expect(screen).toMatch(/1 # 見出し\n.*2\n.*3 全角の長い行を折り返す。全角の長い行\n.*│ {5}を折り返す。/)
    // It is listened to a moment after it is shown: whoever writes goes on until that shows.
    const writing = setInterval(() => appendFile(join(folder, '👨‍👩‍👧 家族', 'メモ.md'), '追加\n'), 200)
    await pty.until(/● .*メモ.*4 追加/s).finally(() => clearInterval(writing))
    pty.press('q')
    await pty.until(/ended 0/)
    expect(pty.terminal.buffer.active.type).toBe('normal')
  })

  test('says that nothing is at a URI, in the words of the other commands', async () => {
    run(`${tui} missing.txt`)
    const screen = await pty.until(/There is nothing here, or/)
    expect(screen).not.toContain('ENOENT')
    pty.press('q')
    await pty.until(/ended 0/)
  })

  test('UI16 UI21 UI26: nothing of a resource reaches the terminal but as text', async () => {
    run(`${tui} evil.txt`)
    const screen = await pty.until(/first/)
    expect(screen).toMatch(/first\\u001b\]0;stolen\\u0007/)
    expect(screen).toContain('\\u202e')
    expect(title).not.toContain('stolen')
    const written = pty.written()
    for (const sequence of ['\u001b[6n', '\u009b', '\u202e', '\u{e0041}', '\u200b'])
      expect(written).not.toContain(sequence)
    pty.press('q')
    await pty.until(/ended 0/)
  })

  test('takes Japanese from an input method, cut between bytes, and pastes as text', async () => {
    run(tui)
    await pty.until(/README/)
    pty.press('/')
    await pty.until(/Filter:/)
    const bytes = Buffer.from('家族')
    pty.press(bytes.subarray(0, 2))
    await pty.resize(71, 14)
    pty.press(bytes.subarray(2))
    await pty.until(/Filter: 家族/)
    await pty.until((screen) => !screen.includes('README'))
    expect(pty.terminal.buffer.active).toMatchObject({ cursorY: 13, cursorX: 13 })
    pty.press('\u001b')
    await pty.until(/README/)
    pty.press('/\u001b[200~REA\r\nq\u001b[201~')
    await pty.until(/Filter: REA q/)
    pty.press('\u0003')
    await pty.until(/filter {3}s search/)
    pty.press('\u0003')
    await pty.until(/ended 0/)
  })

  test('is put aside and comes back, in whatever size the terminal has by then', async () => {
    run(tui)
    await pty.until(/README/)
    pty.press('\u001a')
    await pty.until(/Stopped/)
    expect(pty.terminal.buffer.active.type).toBe('normal')
    pty.press('stty -a | grep -o " icanon"\r')
    await pty.until(/^ icanon/m)
    await pty.resize(40, 8)
    pty.press('fg\r')
    const isAlternate = () => pty.terminal.buffer.active.type === 'alternate'
    await pty.until((screen) => isAlternate() && screen.includes('README') && !screen.includes('│'))
    await pty.resize(12, 3)
    await pty.until(/small/)
    await pty.resize(90, 14)
    await pty.until(/│/)
    pty.press('q')
    await pty.until(/[$#]\s*$/)
    expect(pty.terminal.buffer.active.type).toBe('normal')
  })

  test('prints the basket into a pipe, and writes it to a file', async () => {
    run(`${tui} --format xml README.md > ../context.xml`)
    await pty.until(/# Notes/)
    pty.press(' ')
    await pty.until(/1 in the basket, \d+ of 32,000/)
    pty.press('e')
    await pty.until(/Write to file: context\.xml/)
    pty.press('\r')
    await pty.until(/Written: context\.xml, \d+ tokens/)
    pty.press('e\r')
    await pty.until(/The file exists already/)
    pty.press('q')
    await pty.until(/ended 0/)
    const printed = await readFile(join(home, 'context.xml'), 'utf8')
    expect(printed).toMatch(/<document index="1" source="file:.*README\.md" level="full".*># Notes\n<\/document>/)
    expect(await readFile(join(folder, 'context.xml'), 'utf8')).toBe(printed)
  })

  test('a signal ends it, and the terminal is as it was', async () => {
    run(`${tui} & child=$!; fg`)
    await pty.until(/README/)
    pty.press('\u001a')
    await pty.until(/Stopped/)
    pty.press('kill -TERM $child; fg\r')
    await pty.until(/Ended by SIGTERM/)
    expect(pty.terminal.buffer.active.type).toBe('normal')
    expect(pty.written().slice(pty.written().lastIndexOf('\u001b[?1049h'))).toMatch(
      /\[\?25h.*\[\?2004l.*\[\?7h.*\[\?1049l/s,
    )
  })

  test('refuses what is no terminal', async () => {
    run(`${tui} < /dev/null; TERM=dumb ${tui}`)
    const screen = await pty.until(/ended 1/)
    expect(screen.replaceAll('\n', '')).toMatch(/stdin is not one.*cannot be drawn on \(TERM=dumb\)/)
  })
})
