import { expect, test, vi } from 'vitest'
import { runCommandLine } from '../../src/cli/run.ts'
import type { ProcessIo } from '../../src/cli/terminal/io.ts'
import { createSecrets } from '../../src/cli/terminal/secrets.ts'

/** Runs a command line in this process: for those that end before they open anything. */
async function ran(words: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const say = (text: string) => void err.push(`${text}\n`)
  const write = async (data: string | Uint8Array) => void out.push(String(data))
  const io: ProcessIo = {
    ...{ out: { isTerminal: false, write }, say, complain: say, saysToTerminal: false },
    secrets: createSecrets(() => []),
  }
  // Advice on how a command is used goes to standard error itself.
  const stderr = vi.spyOn(process.stderr, 'write').mockImplementation((text) => err.push(String(text)) > 0)
  try {
    const code = await runCommandLine(words, io)
    return { code, out: out.join(''), err: err.join('') }
  } finally {
    stderr.mockRestore()
  }
}

test.each([
  [['ls', '--lnog'], 'Did you mean --long?'],
  [['read', ''], 'The URI is empty'],
  [['watch', ''], 'The URI is empty'],
  [['serve', ''], 'The name of a folder is empty'],
  [['read'], "missing required argument 'uri'"],
  [['read', 'README.md', '--lines', 'a-b'], 'FROM-TO'],
  [['read', 'README.md', '--lines', '1-2', '--bytes', '1-2'], 'cannot be used with'],
  [['ls', '--url', 'http://x', '--command', 'y'], 'cannot be used with'],
  [['ls', '--url', 'ftp://x'], 'http'],
  [['ls', '--header', 'A: b'], '--header needs --url'],
  [['ls', '--command', 'a "b'], 'not closed'],
  [['ls', 'file:///a/../b'], 'dot-segment'],
  [['serve', '--http', 'x'], 'HOST:PORT'],
  [['serve', '--stdio', '--http', '1'], 'cannot be used with'],
  [['serve', 'docs', '.', '--name', 'x'], 'A name needs exactly one folder'],
  [['check', '--limit', '0'], 'at least 1'],
  [['serve', '--http', '0.0.0.0:0', '--allow-host', 'http://x'], 'NAME or NAME:PORT'],
  [['serve', '--config', ''], 'The name of the configuration is empty'],
  [['serve', '.', '--stdio', '--allow-host', 'a.example'], '--allow-host is only for HTTP'],
  [['serve', 'docs', '--insecure'], '--insecure is only for HTTP'],
  [['serve', 'docs', '--replica', 'a'], '--replica is only for HTTP'],
  [['pack', 'x', '--budget', '0'], 'at least 1'],
  [['tui'], 'hikidashi ui shows the resources in a browser'],
  [['tui', '--url', 'http://127.0.0.1:1/mcp'], 'In a terminal: hikidashi ls, tree, search and read'],
  [['token', 'add', '--expires', 'x'], 'For help: hikidashi token add --help'],
])('%j is a wrong command line: it exits with 2, with a message and no stack trace', async (words, message) => {
  const { code, out, err } = await ran(words)
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toContain(message)
  expect(err).not.toMatch(/\n\s+at /)
})

test.each([
  [['init', import.meta.filename], 'is not a folder'],
  [['token', 'add', '--tokens', '/none/tokens.json'], '/none/tokens.json cannot be written (ENOENT)'],
  [['token', 'list', '--tokens', '/none/tokens.json'], 'The file /none/tokens.json does not exist yet'],
  [
    ['pack', '--against', '/none/context.json'],
    'The file /none/context.json cannot be read: ENOENT: no such file or directory\n',
  ],
  [['doctor', '--url', '127.0.0.1:8787'], '1 check of 3 failed'],
] as const)('%j gives an error that says what is wrong, and does not call it a bug', async (words, message) => {
  const { err } = await ran(words)
  expect(err).toContain(message)
  expect(err).not.toContain('bug in hikidashi')
})

test('the help of an option for a duration shows the default in the form that the option accepts', async () => {
  const stdout = vi.spyOn(process.stdout, 'write').mockImplementation(() => true)
  try {
    await ran(['auth', 'gdrive', '--help'])
    expect(stdout.mock.calls.join('')).toContain('(default: 5m)')
  } finally {
    stdout.mockRestore()
  }
})
