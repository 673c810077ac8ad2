import { PassThrough } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { vi } from 'vitest'
import type { ProcessIo } from '../../src/cli/terminal/io.ts'
import { bundled } from './bundled.ts'
import type { Result, RunOptions } from './cli.ts'

/**
 * Runs a command in this process, in another current folder and with more variables: for tests of what a command prints, because
 * a process for each is slow. It does not run commands in parallel, nor commands that do not end.
 */
export async function runHere(words: readonly string[], { cwd, env = {} }: Omit<RunOptions, 'input'>): Promise<Result> {
  const { createOutput, createSecrets, escapeLines, runCommand, secretsInArguments, secretsInEnvironment, writeError } =
    await parts()
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
  // Help and advice are written to the streams of the process.
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

const parts = (): Promise<typeof import('./cli-parts.ts')> => import(pathToFileURL(bundled('tests/cli-parts')).href)
