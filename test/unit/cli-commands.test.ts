import { readFileSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import type { Command } from 'commander'
import { beforeAll, describe, expect, test } from 'vitest'
import { commands, createProgram, welcome } from '../../src/cli/program.ts'
import { exitCodes } from '../../src/cli/terminal/exit.ts'
import type { ProcessIo } from '../../src/cli/terminal/io.ts'
import { createSecrets } from '../../src/cli/terminal/secrets.ts'

const io: ProcessIo = {
  ...{ out: { isTerminal: false, write: async () => {} }, say: () => {}, complain: () => {}, saysToTerminal: false },
  secrets: createSecrets(() => []),
}
const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')
const headings = [...page.matchAll(/^#+ (.*)$/gm)].flatMap((match) => (match[1] ?? '').split(/[, ]+/))

let program: Command
beforeAll(async () => {
  program = await createProgram(io, () => true)
})

function helpOf(name: string): string {
  const command = program.commands.find((one) => one.name() === name)
  let help = ''
  command?.configureOutput({ writeOut: (text) => (help += text) })
  command?.outputHelp()
  return help
}

describe.each(Object.keys(commands))('the command %s', (name) => {
  test('has a help text with an example', () => {
    const help = helpOf(name)
    expect(help).toMatch(/^Usage: hikidashi /)
    expect(help).toMatch(new RegExp(`^Examples:\\n(?: .*\\n)*? .*hikidashi ${name}\\b`, 'm'))
    expect(help).toContain('Exit codes: 0')
  })

  test('is in docs/cli.md: in the table, and in a section', () => {
    expect(page).toMatch(new RegExp(`^hikidashi ${name}\\b`, 'm'))
    expect(headings).toContain(name)
  })
})

test('docs/cli.md lists every exit code, and no other', () => {
  const told = [...page.matchAll(/^\| (\d+) \|/gm)].map((match) => Number(match[1]))
  expect(told).toEqual(Object.values(exitCodes).sort((a, b) => a - b))
})

test.each([true, false])('hikidashi without a command lists commands that exist (terminal: %j)', (isTerminal) => {
  const named = [...stripVTControlCharacters(welcome(isTerminal)).matchAll(/^ {2}hikidashi (\w+)/gm)].map(
    (match) => match[1],
  )
  expect(named).toHaveLength(3)
  for (const name of named) expect(Object.keys(commands)).toContain(name)
})
