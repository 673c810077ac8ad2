import { describe, expect, test } from 'vitest'
import { createLog, type LogOptions } from '../../src/cli/terminal/log.ts'

function logger(options: Partial<LogOptions> = {}) {
  const lines: string[] = []
  const now = () => new Date(0)
  const log = createLog({ level: 'info', format: 'text', write: (line) => void lines.push(line), now, ...options })
  return { log, lines }
}

describe('the log of the command line', () => {
  test('has one line for each event, with its fields', () => {
    const { log, lines } = logger()
    log('warn', 'a mount does not answer', { mount: 'git://app', tries: 3, names: ['a', 'b c'], nothing: undefined })
    expect(lines).toEqual([
      '1970-01-01T00:00:00.000Z warn  a mount does not answer mount=git://app tries=3 names=a,"b c"\n',
    ])
  })

  test('omits events below the configured level', () => {
    const { log, lines } = logger({ level: 'warn' })
    log('info', 'x')
    log('error', 'y')
    expect(lines).toHaveLength(1)
    const silent = logger({ level: 'silent' })
    silent.log('error', 'z')
    expect(silent.lines).toEqual([])
  })

  test('escapes texts, so that a line cannot be forged and a terminal not controlled', () => {
    const { log, lines } = logger()
    log('info', 'read\n1970 error forged \u001b[2J', { uri: 'x://a\n b="c" \u202e' })
    expect(lines).toEqual([
      '1970-01-01T00:00:00.000Z info  read\\n1970 error forged \\u001b[2J uri="x://a\\n b=\\"c\\" \\u202e"\n',
    ])
  })

  test('has the messages of an error and its causes, and the stack at the debug level only', () => {
    const error = new Error('outer', { cause: new Error('inner') })
    const { log, lines } = logger()
    log('error', 'failed', { error })
    expect(lines[0]).toBe('1970-01-01T00:00:00.000Z error failed error="outer: inner"\n')
    const debug = logger({ level: 'debug' })
    debug.log('error', 'failed', { error })
    expect(debug.lines[0]).toContain('error.stack="Error: outer\\n')
    expect(debug.lines[0]?.split('\n')).toHaveLength(2)
  })

  test('is JSON if configured, whatever the names of the fields', () => {
    const { log, lines } = logger({ format: 'json' })
    log('info', 'serving', { url: 'http://x', mounts: ['a'], level: 'forged', big: 1n })
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      time: '1970-01-01T00:00:00.000Z',
      level: 'info',
      message: 'serving',
      url: 'http://x',
      mounts: ['a'],
      big: '1',
    })
  })

  test('has no line over the maximum length', () => {
    for (const format of ['text', 'json'] as const) {
      const { log, lines } = logger({ format })
      log('info', 'x', { long: 'y'.repeat(100_000), many: Array(10_000).fill('z') })
      expect(lines[0]?.length).toBeLessThan(8300)
      if (format === 'json') expect(JSON.parse(lines[0] ?? '')).toMatchObject({ message: 'x' })
    }
  })
})
