import { describe, expect, test } from 'vitest'
import { createStatusLine } from '../../src/cli/terminal/io.ts'
import { createProgress } from '../../src/cli/terminal/progress.ts'
import { coloursFor, isColourful } from '../../src/cli/terminal/text.ts'

describe('colours in a terminal', () => {
  test.each([
    ['a terminal', {}],
    ['a terminal', { NO_COLOR: '' }],
    ['not a terminal', { FORCE_COLOR: '1' }],
    ['not a terminal', { FORCE_COLOR: '', TERM: 'dumb' }],
    ['a terminal', { FORCE_COLOR: '1', NO_COLOR: '1' }],
  ])('are used if the output is %s and the environment is %j', (output, env) =>
    expect(isColourful(output === 'a terminal', env)).toBe(true),
  )

  test.each([
    ['not a terminal', {}],
    ['a terminal', { NO_COLOR: '1' }],
    ['a terminal', { TERM: 'dumb' }],
    ['a terminal', { FORCE_COLOR: '0' }],
    ['a terminal', { FORCE_COLOR: 'false' }],
  ])('are not used if the output is %s and the environment is %j', (output, env) =>
    expect(isColourful(output === 'a terminal', env)).toBe(false),
  )

  test('leave a text unchanged if they are off, and an empty text always', () => {
    expect(coloursFor(false, {}).red('a')).toBe('a')
    expect(coloursFor(true, {}).red('a')).toBe('\u001b[31ma\u001b[39m')
    expect(coloursFor(true, {}).bold('')).toBe('')
  })
})

describe('progress in a terminal', () => {
  const clock = () => {
    let time = 0
    return { now: () => time, pass: (milliseconds: number) => (time += milliseconds) }
  }
  const on = (terminals: { out: boolean; err: boolean }, options: Parameters<typeof createProgress>[1] = {}) => {
    const written: string[] = []
    const { now, pass } = clock()
    const line = createStatusLine(
      (text) => void written.push(text),
      () => 100,
    )
    const io = { out: { isTerminal: terminals.out, write: async () => {} }, saysToTerminal: terminals.err }
    return { written, pass, progress: createProgress(io, { env: {}, line, now, ...options }) }
  }
  const seen = (text = '') => text.replace('\r', '').replace('\u001b[K', '')

  test('is shown after a second if the output does not go to the terminal, and is erased at the end', () => {
    const { written, pass, progress } = on({ out: false, err: true })
    progress.add(500)
    expect(written).toEqual([])
    pass(1500)
    progress.add(1000)
    pass(50)
    progress.add(1)
    progress.end()
    progress.end()
    expect(written.map(seen)).toEqual(['⠋ 1,500 resources …', ''])
    expect(written.at(-1)).toBe('\r\u001b[K')
  })

  test('has a bar, a percentage and the remaining time if the total is known', () => {
    const { written, pass, progress } = on({ out: false, err: true }, { total: 3000, what: 'documents' })
    pass(2000)
    progress.add(1000)
    progress.end()
    expect(seen(written[0])).toBe('[=======>                ]  33%  1,000 of 3,000 documents, 4 s left')
    const whole = on({ out: false, err: true }, { done: 0, total: 4, what: '' })
    whole.pass(2000)
    whole.progress.set({ done: 4 })
    whole.progress.end()
    expect(seen(whole.written[0])).toBe('[=======================>] 100%  4 of 4')
  })

  test('names the current step if there is no count', () => {
    const { written, pass, progress } = on({ out: true, err: true }, { what: 'Connecting', besideOutput: true })
    pass(1001)
    progress.set({})
    pass(200)
    progress.set({ what: 'Asking' })
    progress.end()
    expect(written.map(seen)).toEqual(['⠋ Connecting …', '⠙ Asking …', ''])
  })

  test.each([
    ['the output goes to the same terminal', { out: true, err: true }, {}],
    ['standard error is not a terminal', { out: false, err: false }, {}],
    ['the terminal cannot erase a line', { out: false, err: true }, { env: { TERM: 'dumb' } }],
  ])('is not shown if %s', (_, terminals, options) => {
    const { written, pass, progress } = on(terminals, options)
    pass(5000)
    progress.add(1)
    progress.end()
    expect(written).toEqual([])
  })

  test('is a line every few seconds if standard error is not a terminal and lines are requested', () => {
    const lines: string[] = []
    const writeLine = (text: string) => void lines.push(text)
    const { written, pass, progress } = on({ out: true, err: false }, { what: 'documents indexed', writeLine })
    progress.add(1)
    expect(lines).toEqual([])
    pass(3000)
    progress.add(299)
    pass(4999)
    progress.set({ total: 1290 })
    pass(1)
    progress.add(200)
    progress.end()
    expect(lines).toEqual(['300 documents indexed …', '500 of 1,290 documents indexed …'])
    expect(written).toEqual([])
  })

  test('is never wider than the terminal, in columns and not in characters', () => {
    const written: string[] = []
    const line = createStatusLine(
      (text) => void written.push(text),
      () => 8,
    )
    line.show('日本語日本語')
    line.show('日本語日本語')
    expect(written).toEqual(['\r日本語\u001b[K'])
  })
})
