import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Terminal } from '@xterm/headless'

// It is a CommonJS module whose names Node does not find.
const xterm = createRequire(import.meta.url)('@xterm/headless') as typeof import('@xterm/headless')

export interface PtyOptions {
  readonly cwd: string
  readonly columns?: number
  readonly rows?: number
  readonly env?: Readonly<Record<string, string>>
}

/** A shell line in a terminal of its own, and what that terminal shows. */
export interface Pty {
  readonly terminal: Terminal
  /** All that was written to the terminal. */
  readonly written: () => string
  /** The lines of the screen, as text, without blanks at their ends. */
  screen(): readonly string[]
  /** Sends what a keyboard would. */
  press(keys: string | Uint8Array): void
  /** Resolves with the screen once it shows what is looked for. Rejects with the screen when the process ends before, or after long. */
  until(pattern: RegExp | ((screen: string) => boolean)): Promise<string>
  resize(columns: number, rows: number): Promise<void>
  kill(signal: NodeJS.Signals): void
  /** Ends the shell and what it started. */
  close(): Promise<void>
  readonly ended: Promise<number | null>
}

const patience = 25_000

/** Runs a line of `bash` in a pseudo-terminal (`script`, of util-linux). */
export function openPty(line: string, { cwd, columns = 80, rows = 24, env = {} }: PtyOptions): Pty {
  const home = mkdtempSync(join(tmpdir(), 'hikidashi-pty-'))
  const terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, scrollback: 1000 })
  const shell = `tty > ${home}/tty; echo $$ > ${home}/pid; stty cols ${columns} rows ${rows}; ${line}`
  const child = spawn('script', ['-qfec', shell, '/dev/null'], {
    cwd,
    env: { ...process.env, SHELL: '/bin/bash', TERM: 'xterm-256color', NO_COLOR: '', ...env },
  })
  let all = ''
  let code: number | null | undefined
  const looks = new Set<() => void>()
  const look = () => {
    for (const each of looks) each()
  }
  child.stdin.on('error', () => {})
  child.stdout.on('data', (bytes: Buffer) => {
    all += bytes.toString('latin1')
    terminal.write(bytes, look)
  })
  // What the terminal answers to questions goes back, as in a real one.
  terminal.onData((text) => child.stdin.write(text))
  const ended = new Promise<number | null>((resolve) => {
    child.on('close', (status) => {
      code = status
      terminal.write('', () => {
        look()
        rmSync(home, { recursive: true, force: true })
        resolve(status)
      })
    })
  })
  const screen = () => {
    const { active } = terminal.buffer
    return Array.from({ length: terminal.rows }, (_, row) =>
      (active.getLine(active.viewportY + row)?.translateToString(true) ?? '').trimEnd(),
    )
  }
  return {
    terminal,
    written: () => Buffer.from(all, 'latin1').toString('utf8'),
    screen,
    press: (keys) => void child.stdin.write(keys),
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const done = (settle: () => void) => {
          clearTimeout(timer)
          looks.delete(check)
          settle()
        }
        const check = () => {
          const text = screen().join('\n')
          const isThere = typeof pattern === 'function' ? pattern(text) : pattern.test(text)
          if (isThere) done(() => resolve(text))
          else if (code !== undefined) done(() => reject(new Error(`It ended (${code}) without ${pattern}:\n${text}`)))
        }
        const timer = setTimeout(
          () => done(() => reject(new Error(`There was no ${pattern} for long:\n${screen().join('\n')}`))),
          patience,
        )
        looks.add(check)
        check()
      }),
    resize: async (cols, lines) => {
      terminal.resize(cols, lines)
      await promisify(spawnDone)('stty', [
        '-F',
        readFileSync(`${home}/tty`, 'utf8').trim(),
        'cols',
        `${cols}`,
        'rows',
        `${lines}`,
      ])
    },
    kill: (signal) => process.kill(Number(readFileSync(`${home}/pid`, 'utf8')), signal),
    close: async () => {
      // The end of its terminal is the end of all that runs in it.
      child.kill('SIGKILL')
      await ended
    },
    ended,
  }
}

function spawnDone(command: string, args: readonly string[], done: (error: Error | null) => void): void {
  spawn(command, args, { stdio: 'ignore' })
    .on('error', done)
    .on('close', (status) => done(status === 0 ? null : new Error(`${command} ended with ${status}`)))
}
