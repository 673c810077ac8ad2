import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { usageError } from '../terminal/exit.ts'
import { escapeText } from '../terminal/text.ts'

/** The name of a header and the colon after it (RFC 9110, section 5.1). */
export const headerPattern = /^[\w!#$%&'*+.^`|~-]+:/

/**
 * Splits a command line into words, as a shell does: quotes and `\` count, but on Windows `\` only separates names in a
 * path. Variables and wildcards are not expanded, because there is no shell.
 * @throws CommandError for an open quote, or a `\` at the end
 */
export function splitCommand(line: string, platform: NodeJS.Platform = process.platform): readonly string[] {
  const words: string[] = []
  let word: string | undefined
  let quote: string | undefined
  for (let i = 0; i < line.length; i++) {
    const character = line[i] ?? ''
    const escapes = character === '\\' && platform !== 'win32' && quote !== "'"
    if (escapes && (quote === undefined || /["\\$`]/.test(line[i + 1] ?? ''))) {
      i++
      if (i === line.length) throw usageError(`The command ends in a backslash, which escapes nothing: ${line}`)
      word = (word ?? '') + (line[i] ?? '')
    } else if (character === quote) quote = undefined
    else if (quote === undefined && (character === '"' || character === "'")) {
      quote = character
      word ??= ''
    } else if (quote === undefined && /\s/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + character
  }
  if (quote !== undefined) throw usageError(`A quote in the command is not closed: ${line}`)
  if (word !== undefined) words.push(word)
  return words
}

/**
 * Joins words to a command line for a POSIX shell, and on Windows for `cmd.exe` or PowerShell. Characters that are
 * unsafe in a terminal are escaped, for a POSIX shell as `$'a\x0ab'` (POSIX.1-2024, section 2.2.4).
 */
export function joinCommand(words: readonly string[], platform: NodeJS.Platform = process.platform): string {
  return words.map(platform === 'win32' ? quotedForWindows : quoted).join(' ')
}

/** Programs on Windows parse their command line themselves: `"` and the backslashes before it are escaped. */
function quotedForWindows(word: string): string {
  const text = escapeText(word)
  if (/^[\w@+:./\\~-]+$/.test(text)) return text
  return `"${text.replace(/(\\*)"/g, '$1$1\\"').replace(/\\+$/, '$&$&')}"`
}

function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word
  if (escapeText(word) === word) return `'${word.replaceAll("'", "'\\''")}'`
  const characters = Array.from(word, (character) => {
    if (escapeText(character) === character) return character.replace(/['\\]/, '\\$&')
    return Array.from(Buffer.from(character), (byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')
  })
  return `$'${characters.join('')}'`
}

function readPackage(): { readonly version: string; readonly private?: boolean } {
  return JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
}

export function packageVersion(): string {
  return readPackage().version
}

/** npm refuses to publish a package with "private", so npx cannot find it. */
export function isPublished(): boolean {
  return readPackage().private !== true
}

export interface ServerToAdd {
  readonly name: string
  readonly url?: string
  readonly command: readonly string[]
  /** The token file, if the server requires tokens over HTTP. */
  readonly tokens?: string
}

const tokenVariable = 'HIKIDASHI_TOKEN'

/**
 * Returns commands and settings that add a server over HTTP to hosts. A token comes from an environment variable, so no
 * secret is written into a file.
 */
export function httpInstructions({ name, url = '', command, tokens }: ServerToAdd): string {
  const entry = {
    type: 'http',
    url,
    ...(tokens === undefined ? {} : { headers: { Authorization: `Bearer \${env:${tokenVariable}}` } }),
  }
  const claudeHeader = tokens === undefined ? [] : ['--header', `Authorization: Bearer \${${tokenVariable}}`]
  const ownOption = tokens === undefined ? '' : ` --token-env ${tokenVariable}`
  const make =
    tokens === undefined
      ? []
      : [
          `This server requires a token. Create one, and put it into ${tokenVariable} in the environment of the host:`,
          `  ${joinCommand(['hikidashi', 'token', 'add', '--tokens', tokens, '--name', 'my-host'])}`,
        ]
  return [
    ...make,
    'Add it to a host:',
    `  Claude Code   ${joinCommand(['claude', 'mcp', 'add', '--transport', 'http', name, url, ...claudeHeader])}`,
    `  VS Code       .vscode/mcp.json: ${JSON.stringify({ servers: { [name]: entry } })}`,
    `  Any           hikidashi add HOST --url ${url}${ownOption}`,
    'Or let the host start it:',
    startedByHost({ name, command }),
  ].join('\n')
}

export function stdioInstructions(server: ServerToAdd): string {
  return `Add it to a host, which then starts it:\n${startedByHost(server)}`
}

function startedByHost({ name, command: [program = '', ...args] }: ServerToAdd): string {
  const entry = { command: program, args }
  return `  Claude Code   claude mcp add ${name} -- ${joinCommand([program, ...args])}
  VS Code       .vscode/mcp.json: ${JSON.stringify({ servers: { [name]: { type: 'stdio', ...entry } } })}
  Others        ${JSON.stringify({ mcpServers: { [name]: entry } })}
hikidashi writes these entries for you: hikidashi add HOST (hikidashi hosts lists the names)`
}

export function toHostServerName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '') || 'hikidashi'
}

/** Windows finds `npx` only through `cmd`. */
export function npxCommand(args: readonly string[], platform: NodeJS.Platform = process.platform): readonly string[] {
  return [...(platform === 'win32' ? ['cmd', '/c'] : []), 'npx', '-y', 'hikidashi', ...args]
}

/** Returns the command line that starts this installation from any folder. */
export function ownCommand(
  args: readonly string[],
  main = fileURLToPath(new URL('../main.js', import.meta.url)),
  platform: NodeJS.Platform = process.platform,
  published: () => boolean = isPublished,
): readonly string[] {
  // The cache of npx may be removed at any time.
  if (/[\\/]_npx[\\/]/.test(main) && published()) return npxCommand(args, platform)
  const run = 'deno' in process.versions ? ['run', '--allow-all', '--no-config'] : []
  return [process.execPath, ...run, resolve(main), ...args]
}
