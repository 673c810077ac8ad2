import { PassThrough } from 'node:stream'
import { vi } from 'vitest'
import { createSecrets, secretsInArguments, secretsInEnvironment } from '../../src/cli/operations/secrets.ts'
import { run as runCommand } from '../../src/cli/run.ts'
import { type ProcessIo, writeError } from '../../src/cli/terminal/io.ts'
import { createOutput } from '../../src/cli/terminal/output.ts'
import { escapeLines } from '../../src/cli/terminal/text.ts'
import type { Result, RunOptions } from './cli.ts'

/**
 * Runs a command in this process, in another current folder and with more variables: for tests of what a command prints, of
 * which a process for each would cost more than everything else. Not for one beside another, nor for commands that do not end.
 */
export async function runHere(words: readonly string[], { cwd, env = {} }: Omit<RunOptions, 'input'>): Promise<Result> {
  const out: Buffer[] = []
  const err: Buffer[] = []
  const stdout = new PassThrough().on('data', (chunk: Buffer) => void out.push(chunk))
  const secrets = createSecrets(() => [...secretsInArguments(words), ...secretsInEnvironment(process.env)])
  const clean = (text: string) => escapeLines(secrets.scrub(text))
  const io: ProcessIo = {
    out: createOutput(stdout),
    say: (text) => writeError(`${clean(text)}\n`),
    complain: (text) => writeError(`hikidashi: ${clean(text)}\n`),
    saysToTerminal: false,
    secrets,
  }
  const folder = process.cwd()
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const)
  // Help and advice go to the streams of the process themselves.
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => out.push(Buffer.from(text)) > 0),
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => err.push(Buffer.from(text)) > 0),
  ]
  try {
    process.chdir(cwd)
    Object.assign(process.env, env)
    const code = await runCommand(words, io)
    return { code, signal: null, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() }
  } finally {
    for (const spy of spies) spy.mockRestore()
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
    process.chdir(folder)
  }
}
