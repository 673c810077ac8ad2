import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { parse as parseJsonc } from 'jsonc-parser'
import { parse as parseToml } from 'smol-toml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { localLaunch } from '../../src/cli/hosts/add-launch.ts'
import { withEntry } from '../../src/cli/hosts/change.ts'
import { hosts } from '../../src/cli/hosts/table.ts'
import { type Host, hostScopes, type JsonObject, valueAt } from '../../src/cli/hosts/types.ts'
import { joinCommand } from '../../src/cli/operations/command-line.ts'
import { CommandError } from '../../src/cli/terminal/exit.ts'
import { escapeText } from '../../src/cli/terminal/text.ts'
import { createPlace, openWith } from '../support/hosts.ts'
import { volumeOf } from '../support/volume.ts'

// A host starts exactly the folder that was named, whatever its name is; or it is not added, with a reason.

const goldens = join(import.meta.dirname, '../data/hosts')
let machine: Awaited<ReturnType<typeof createPlace>>
beforeAll(async () => {
  machine = await createPlace()
})
afterAll(() => machine.remove())

/** Names as a POSIX file system allows them, made of what formats, shells and hosts give a meaning. */
const pieces = [
  ...' \'"\\`$#:;,=%&|<>()[]{}!*?~-+@^.\n\r\t\u0001\u001b\u007f\u0085\u00a0\u2028\u2029\u202e\ufeff',
  ...[
    'a',
    'Z',
    '0',
    '日本',
    '😀',
    "'''",
    '"""',
    '${',
    '{env:X}',
    '$HOME',
    ': ',
    ' #',
    '- ',
    '\\n',
    '\\u0041',
    '%PATH%',
    'true',
    '|',
    '>-',
  ],
]
const fileName = fc
  .array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 8 })
  .map((parts) => parts.join(''))
  .filter((name) => name !== '.' && name !== '..')

/** The texts of a file in each way that readers of its format see it. */
function readings(format: Host['format'], text: string): readonly unknown[] {
  if (format === 'toml') return [parseToml(text)]
  if (format === 'yaml') return (['1.1', '1.2'] as const).map((version) => parseYaml(text, { version }) as unknown)
  return [parseJsonc(text, [], { allowTrailingComma: true }) as unknown]
}

function before(host: Host, kind: 'none' | 'there' | 'crlf'): string | undefined {
  if (kind === 'none') return undefined
  const name = readdirSync(goldens).find((file) => file.startsWith(`${host.id}.before.`)) ?? ''
  const text = readFileSync(join(goldens, name), 'utf8')
  return kind === 'there' ? text : text.replace(/\r?\n/g, '\r\n')
}

const cases = hosts.flatMap((host) =>
  hostScopes
    .filter((scope) => host.files[scope] !== undefined)
    .flatMap((scope) => (['none', 'there', 'crlf'] as const).map((kind) => ({ id: host.id, scope, kind, host }))),
)

describe('the name of a folder is written exactly to a settings file, or refused with a reason:', () => {
  test.each(cases)('$id ($scope), settings file before: $kind', async ({ host, scope, kind }) => {
    const opened = await openWith(host, machine, before(host, kind), scope)
    let written = 0
    fc.assert(
      fc.property(fileName, fc.boolean(), (name, isInside) => {
        const folder = `${isInside ? machine.folder : '/srv'}/${name}`
        const launch = localLaunch({ folders: [folder], env: [] })
        const words = launch.transport === 'stdio' ? launch.command : []
        const expected = words.map((word) => (typeof word === 'string' ? word : word.path))
        expect(expected).toContain(folder)
        const context = { name: 'hikidashi', scope, machine }
        let text: string
        try {
          text = withEntry(opened, 'hikidashi', host.entryOf(launch, context, opened.settings))
        } catch (error) {
          expect(error).toBeInstanceOf(CommandError)
          expect((error as CommandError).message).toMatch(/would take a part|cannot be edited safely/)
          return
        }
        written++
        for (const settings of readings(host.format, text)) {
          const entry = valueAt(settings, [...host.serversAt(settings), 'hikidashi']) as JsonObject
          const found = host
            .foundIn(entry)
            .command?.map((word) => word.replace(/^\$\{workspaceFolder\}/, machine.folder))
          expect(found).toEqual(expected)
        }
      }),
      { numRuns: volumeOf(150), seed: 20 },
    )
    expect(written).toBeGreaterThan(volumeOf(150) / 2)
  })
})

describe('a printed command line', () => {
  test('has the same words in bash, and no control characters', () => {
    const bash = (line: string) =>
      execFileSync('bash', ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8', maxBuffer: 2 ** 24 })
    const lists = fc.sample(fc.array(fileName, { minLength: 1, maxLength: 3 }), { numRuns: volumeOf(300), seed: 20 })
    for (const words of lists) expect(escapeText(joinCommand(words))).toBe(joinCommand(words))
    const all = lists.flat()
    expect(bash(joinCommand(all)).split('\0').slice(0, -1)).toEqual(all)
  })
})

describe('npx on Windows, which cmd starts,', () => {
  test.each(['C:\\R&D', 'C:\\100%PATH%', 'C:\\a^b', 'C:\\a (b)', 'C:\\it!'])('is not given the folder %s', (folder) => {
    const platform = Object.getOwnPropertyDescriptor(process, 'platform')
    Object.defineProperty(process, 'platform', { ...platform, value: 'win32' })
    try {
      expect(() => localLaunch({ folders: [folder], npx: true, env: [] })).toThrow(/cannot be passed to npx on Windows/)
      expect(() => localLaunch({ folders: [folder], env: [] })).not.toThrow()
      expect(() => localLaunch({ folders: ['C:\\plain name'], npx: true, env: [] })).not.toThrow()
    } finally {
      if (platform !== undefined) Object.defineProperty(process, 'platform', platform)
    }
  })
})
