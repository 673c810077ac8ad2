import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The built command line. */
export const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface Result {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

export interface RunOptions {
  readonly cwd: string
  /** The content of stdin. By default empty. */
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

/** A running command, with its output so far. */
export interface Running {
  readonly child: ChildProcessWithoutNullStreams
  /** Resolves once stderr matches; rejects if the process ends before. */
  says(pattern: RegExp): Promise<RegExpExecArray>
  readonly ended: Promise<Result>
}

export function start(args: readonly string[], { cwd, env = {} }: RunOptions): Running {
  const child = spawn(process.execPath, [main, ...args], { cwd, env: { ...process.env, ...env } })
  const said = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said.out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.err += text))
  // Writing to an ended process fails; the test checks its exit instead.
  child.stdin.on('error', () => {})
  const ended = new Promise<Result>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, ...said }))
  })
  const says = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const look = () => {
        const found = pattern.exec(said.err)
        if (found !== null) resolve(found)
      }
      child.stderr.on('data', look)
      ended.then(() => reject(new Error(`It ended without saying ${pattern}: ${said.err}`)), reject)
      look()
    })
  return { child, says, ended }
}

/** Runs a command until it exits. */
export function run(args: readonly string[], options: RunOptions): Promise<Result> {
  const { child, ended } = start(args, options)
  child.stdin.end(options.input ?? '')
  return ended
}

/** The beginning of a PNG, as binary content. */
export const picture = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')

/** Creates a folder of notes, and returns its path: four files on three levels, one with a Japanese name. */
export async function writeNotes(home: string): Promise<string> {
  const folder = join(home, 'notes')
  await mkdir(join(folder, 'docs', 'deep'), { recursive: true })
  await writeFile(join(folder, 'README.md'), '# Notes\n')
  const numbers = Array.from({ length: 100 }, (_, i) => `${i + 1}\n`)
  await writeFile(join(folder, 'docs', 'numbers.txt'), numbers.join(''))
  await writeFile(join(folder, 'docs', 'picture.png'), picture)
  await writeFile(join(folder, 'docs', 'deep', '日本 語.txt'), 'こんにちは')
  return folder
}
