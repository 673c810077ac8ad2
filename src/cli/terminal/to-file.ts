import { createWriteStream, openSync } from 'node:fs'
import type { Command } from 'commander'
import { failed } from './exit.ts'
import type { Io } from './io.ts'
import { createOutput, type Output, outputClosed } from './output.ts'

/** The commands whose data `-o, --output FILE` writes into a file, besides the commands with such an option of their own. */
const offering = new Set([
  'ls',
  'tree',
  'stat',
  'search',
  'watch',
  'templates',
  'complete',
  'status',
  'check',
  'doctor',
  'access',
  'hosts',
])

/** Input and output of a command whose data may go to a file. */
export interface FileOutput {
  readonly io: Io
  /** Adds the option to a command, after the other options of the command. */
  offer(command: Command): void
}

export function createFileOutput(io: Io): FileOutput {
  let out = io.out
  const current: Output = {
    get isTerminal() {
      return out.isTerminal
    },
    write: (data, options) => out.write(data, options),
  }
  const addOption = (command: Command): void => {
    for (const inner of command.commands) addOption(inner)
    if (command.commands.length > 0 || command.options.some(({ long }) => long === '--output')) return
    command.option('-o, --output <file>', 'write the output to a file')
    command.hook('preAction', (_, action) => {
      const { output } = action.opts<{ readonly output?: string }>()
      if (output !== undefined) out = openFile(output)
    })
  }
  return {
    io: { ...io, out: current },
    offer: (command) => {
      if (offering.has(command.name())) addOption(command)
    },
  }
}

/** Opens a file for data and empties it. @throws CommandError when that fails. */
function openFile(file: string): Output {
  const cannot = (error: unknown) =>
    failed(`The file ${file} cannot be written: ${error instanceof Error ? error.message : String(error)}`)
  let descriptor: number
  try {
    descriptor = openSync(file, 'w')
  } catch (error) {
    throw cannot(error)
  }
  const output = createOutput(createWriteStream(file, { fd: descriptor }))
  return {
    isTerminal: false,
    write: (data) =>
      output.write(data).catch((error: unknown) => {
        throw error === outputClosed ? error : cannot(error)
      }),
  }
}
