import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Argument, Command, Option } from 'commander'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { completionScripts, completionShells } from '../../src/cli/commands/completion.ts'
import { completeLastWord, completeLine } from '../../src/cli/operations/complete-line.ts'
import type { ProcessIo } from '../../src/cli/terminal/io.ts'
import { createSecrets } from '../../src/cli/terminal/secrets.ts'
import { findProgram } from '../../src/providers/program.ts'

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-completion-'))
beforeAll(() => {
  mkdirSync(join(folder, 'notes/docs'), { recursive: true })
  writeFileSync(join(folder, 'notes/docs/guide.md'), '')
  writeFileSync(join(folder, 'notes/docs/設計 図.md'), '')
  const mounts = {
    'docs://notes': { provider: 'files', root: 'notes' },
    'docs://private': { provider: 'files', root: 'notes', access: ['boss'] },
    // Pressing a key starts no program: it would leave a trace.
    'other://x': { provider: 'remote', command: 'touch', args: [join(folder, 'started')] },
  }
  writeFileSync(join(folder, 'hikidashi.json'), JSON.stringify({ mounts }))
})
afterAll(() => rmSync(folder, { recursive: true }))

async function answer(...args: readonly string[]): Promise<readonly string[]> {
  let text = ''
  const write = async (data: string | Uint8Array) => {
    text += data
  }
  const complain = (said: string) => {
    throw new Error(said)
  }
  const io: ProcessIo = {
    ...{ out: { isTerminal: false, write }, say: complain, complain, saysToTerminal: true },
    secrets: createSecrets(() => []),
  }
  await completeLine(args, io)
  return text.split('\n').slice(0, -1)
}
const words = (...typed: readonly string[]) => answer('words', ...typed)
const values = async (...typed: readonly string[]) => (await words(...typed)).map((line) => line.split('\t')[0])
const config = () => ['--config', join(folder, 'hikidashi.json')] as const

describe('the completions of a word', () => {
  const program = new Command('it').option('-v, --verbose', 'say more').addCommand(
    new Command('copy')
      .argument('<uri>')
      .addArgument(new Argument('<shape>').choices(['flat', 'deep']))
      .argument('[dir...]')
      .option('--config <file>', 'which')
      .addOption(new Option('--mode <mode>').choices(['fast', 'safe']))
      .option('--to [folder]', 'where')
      .addCommand(new Command('inner').description('within')),
  )
  test.each([
    [[''], ['copy'], undefined],
    [['-'], ['--verbose', '--help'], undefined],
    [['copy', '--m'], ['--config', '--mode', '--to', '--help'], undefined],
    [['copy', '--mode', ''], ['fast', 'safe'], undefined],
    [['copy', '--mode=f'], ['fast', 'safe'], undefined],
    [['copy', '--config', ''], [], 'files'],
    [['copy', '--to='], [], 'folders'],
    [['copy', ''], ['inner'], undefined],
    [['copy', 'x://a', ''], ['flat', 'deep'], undefined],
    [['copy', 'x://a', '--config', 'c', 'flat', 'a', 'b', ''], [], 'folders'],
    [['copy', 'x://a', '--', '-'], ['flat', 'deep'], undefined],
    [['nothing', 'like', 'it', ''], [], undefined],
  ])('are the commands, options, choices or paths that may come next in %j', (typed, candidates, kind) => {
    const wanted = completeLastWord(program, typed)
    expect({ candidates: wanted.candidates.map(({ value }) => value), kind: wanted.kind }).toEqual({ candidates, kind })
  })
})

describe('hikidashi __complete', () => {
  test('completes commands, options and choices, with descriptions', async () => {
    expect(await words('tre')).toEqual(['tree\tshow resources as a tree, with sizes and tokens'])
    expect(await values('tree', '--enc')).toEqual(['--encoding'])
    expect(await values('tree', '--encoding', '')).toEqual(['o200k_base', 'cl100k_base'])
    expect(await values('token', 'li')).toEqual(['list'])
    expect(await words('ls', '--config', '')).toEqual([':files'])
    expect(await words('serve', '')).toEqual([':folders'])
  })

  test('completes mounts, and the children of the typed directory', async () => {
    expect(await values('ls', ...config(), '')).toEqual(['docs://notes/', 'docs://private/', 'other://x/', ':files'])
    expect(await values('read', ...config(), 'docs://n')).toEqual(['docs://notes/'])
    expect(await values('read', ...config(), 'docs://notes/')).toEqual(['docs://notes/docs/'])
    expect(await values('read', ...config(), 'docs://notes/docs/')).toEqual([
      'docs://notes/docs/guide.md',
      'docs://notes/docs/%E8%A8%AD%E8%A8%88%20%E5%9B%B3.md',
    ])
    expect(await values('search', ...config(), '--mount', 'docs://n')).toEqual(['docs://notes'])
  })

  test('completes no resource that the caller may not see', async () => {
    expect(await values('read', ...config(), 'docs://private/')).toEqual([])
    expect(await values('read', ...config(), 'docs://private/docs/')).toEqual([])
  })

  test('prints nothing if there is an error, and starts no server of --command', async () => {
    expect(await values('read', '--config', 'nope.json', 'x://')).toEqual([])
    expect(await values('read', '--url', 'http://127.0.0.1:9/mcp', 'x://')).toEqual([])
    expect(await values('read', '--command', `touch ${join(folder, 'started')}`, 'x://')).toEqual([])
    expect(await answer()).toEqual(await words(''))
    expect(() => execFileSync('ls', [join(folder, 'started')], { stdio: 'pipe' })).toThrow()
  })

  test('parses a line of bash: quotes, the cursor, and the word breaks of bash', async () => {
    const line = `hikidashi read --config '${join(folder, 'hikidashi.json')}' docs://no`
    expect(await answer('bash', `${line} later`, String(line.length), ' :=')).toEqual(['//notes/'])
    expect(await answer('bash', line, String(line.length), ' ')).toEqual(['docs://notes/'])
    expect(await answer('bash', 'hikidashi tree "--enc', '21', ' :=')).toEqual(['--encoding\tthe encoding of tokens'])
    expect((await answer('bash', 'hikidashi ', '10', ' :=')).length).toBeGreaterThan(10)
    expect(await answer('bash', 'hikidashi tree --encoding=o', '27', ' :=')).toEqual(['o200k_base'])
  })
})

describe('the completion scripts', () => {
  test.each(completionShells)('for %s are accepted by the shell, if it is installed', async (shell) => {
    const program = await findProgram(shell)
    expect(completionScripts[shell]).toContain('__complete')
    // Where the shell is not installed, the words above are what there is.
    if (program === undefined) return
    const file = join(folder, `script.${shell}`)
    writeFileSync(file, completionScripts[shell])
    execFileSync(program, ['-n', file], { stdio: 'pipe' })
  })

  test('complete a line in bash', async () => {
    const bash = await findProgram('bash')
    if (bash === undefined) return
    const fake = `hikidashi() { if [[ $3 == *' re' ]]; then printf 'read\\twhat\\nremove\\n'; else printf '//notes/\\n'; fi; }`
    const ask = (line: string) =>
      `COMP_LINE='${line}'; COMP_POINT=${line.length}; _hikidashi hikidashi '' hikidashi; printf '[%s]' "\${COMPREPLY[@]}"; echo`
    const input = [fake, completionScripts.bash, ask('hikidashi re'), ask('hikidashi ls docs:')].join('\n')
    const out = execFileSync(bash, ['--norc'], { input, encoding: 'utf8', stdio: 'pipe' })
    expect(out).toBe('[read][remove]\n[//notes/]\n')
  })
})
