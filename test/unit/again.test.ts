import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { commandOf } from '../support/again.ts'

const file = 'test/unit/x.test.ts'

test('the command that repeats a failed test names its file and its whole title', () => {
  expect(commandOf({ file, titles: ['a group', 'adds (1 + 1)'], messages: ['expected 3 to be 2'] }, {})).toBe(
    `npx vitest run test/unit/x.test.ts -t '^a group adds \\(1 \\+ 1\\)$'`,
  )
})

test('the command for a file that could not be loaded runs the whole file', () => {
  expect(commandOf({ file, titles: [], messages: [] }, {})).toBe('npx vitest run test/unit/x.test.ts')
})

test('the command that repeats a failed test sets the test volume and the seed of the failed run', () => {
  const message = 'Property failed after 3 tests\n{ seed: -17, path: "2:0", endOnFailure: true }'
  const environment = { HIKIDASHI_VOLUME: 'full', HIKIDASHI_REQUIRE: 'bash,script', PATH: '/bin' }
  expect(commandOf({ file, titles: ['x'], messages: [message] }, environment)).toBe(
    `HIKIDASHI_VOLUME=full HIKIDASHI_REQUIRE=bash,script FAST_CHECK_SEED=-17 npx vitest run ${file} -t '^x$'`,
  )
  expect(commandOf({ file, titles: ['x'], messages: [`${message}\nWith ATTACK_SEED=5.`] }, {})).toBe(
    `ATTACK_SEED=5 npx vitest run ${file} -t '^x$'`,
  )
  expect(commandOf({ file, titles: ['x (HIKIDASHI_SEED=9)'], messages: [] }, {})).toContain('HIKIDASHI_SEED=9 npx')
})

test('the command that repeats a failed test quotes any title for a shell, and has no control character', () => {
  const titles = ['it\'s $HOME `x` \\ "y" é', 'a\nline\u001b[31m']
  const command = commandOf({ file, titles, messages: [] }, {})
  expect(command).toMatch(/^[^\p{Cc}]+$/u)
  const words = execFileSync('sh', ['-c', `printf '%s\\n' ${command.replace(/^npx /, '')}`], { encoding: 'utf8' })
  const pattern = words.split('\n').at(-2) ?? ''
  expect(titles.join(' ')).toMatch(new RegExp(pattern, 's'))
  expect(`${titles.join(' ')} and more`).not.toMatch(new RegExp(pattern, 's'))
})
