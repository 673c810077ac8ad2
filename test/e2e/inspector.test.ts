import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findTool, type Tool } from '../../conformance/tools.ts'
import type { HttpService } from '../../src/server/index.ts'
import { testOn } from '../attack/harness/wires.ts'
import type { Folder } from '../support/folder.ts'
import { writeOwnSource } from '../support/own-source.ts'
import { requires } from '../support/require.ts'
import {
  createSample,
  pixel,
  sampleAddress,
  sampleSize,
  serveCommand,
  serveSample,
  stdioCommand,
} from '../support/served-folder.ts'
import { someOf, volume } from '../support/volume.ts'

const found = findTool('mcp-inspector')
const suite = requires('inspector', 'command' in found, 'missing' in found ? found.missing : '')

let folder: Folder
let service: HttpService
let home: string

/** What the Inspector writes goes to a folder of its own, and its daemon is nobody else's. */
const environment = () => ({
  ...process.env,
  HOME: home,
  MCP_INSPECTOR_SECRET_STORE: 'memory',
  MCP_INSPECTOR_DAEMON_DIR: join(home, 'daemon'),
  MCP_INSPECTOR_DAEMON_TOKEN: token,
})
const token = randomBytes(32).toString('base64url')

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

async function run(tool: Tool, args: readonly string[]): Promise<Ended> {
  const { command } = findTool(tool) as { readonly command: readonly [string, string] }
  const [node, script] = command
  const options = { env: environment(), maxBuffer: 16 * 1024 * 1024, timeout: 25_000 }
  try {
    return { code: 0, ...(await promisify(execFile)(node, [script, ...args], options)) }
  } catch (error) {
    return error as Ended
  }
}

interface Place {
  readonly options: readonly string[]
  readonly target: readonly string[]
}

const places: Readonly<Record<'http' | 'sse' | 'stdio', () => Place>> = {
  http: () => ({ options: ['--transport', 'http', '--server-url', service.url], target: [] }),
  sse: () => ({ options: ['--transport', 'sse', '--server-url', new URL('/sse', service.url).href], target: [] }),
  stdio: () => {
    const { command, args } = stdioCommand(folder)
    return { options: ['--transport', 'stdio'], target: ['--', command, ...args] }
  },
}

suite('the Inspector', () => {
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'hikidashi-inspector-'))
    folder = createSample()
    service = await serveSample(folder)
  })

  afterAll(async () => {
    await run('mcpdo', ['daemon', 'stop'])
    await service.close()
    folder.remove()
    rmSync(home, { recursive: true, force: true })
  })

  describe.each([
    ['http', 'legacy', '2025-11-25'],
    ['http', 'auto', '2026-07-28'],
    ['http', 'modern', '2026-07-28'],
    ['sse', 'legacy', '2025-11-25'],
    ['stdio', 'legacy', '2025-11-25'],
    ['stdio', 'auto', '2026-07-28'],
    ['stdio', 'modern', '2026-07-28'],
  ] as const)('over %s, era %s', (transport, era, revision) => {
    const call = async (method: string, ...args: readonly string[]) => {
      const { options, target } = places[transport]()
      const asked = [...options, '--protocol-era', era, '--method', method, ...args, ...target]
      const { code, stdout, stderr } = await run('mcp-inspector', ['--cli', '-q', '--format', 'json', ...asked])
      return code === 0
        ? { result: (JSON.parse(stdout) as { result: Record<string, unknown> }).result }
        : { code, error: (JSON.parse(stderr) as { error: unknown }).error }
    }

    test(`negotiates revision ${revision}`, async () => {
      expect(await call('initialize')).toMatchObject({ result: { protocolVersion: revision } })
    })

    // Each call starts the Inspector, which takes a processor most of a second: a row takes the eras of a transport in turn.
    const row = testOn(era, transport === 'sse' ? ['legacy'] : ['legacy', 'auto', 'modern'])

    row('lists the resources of all pages', async () => {
      const { result } = await call('resources/list')
      // The command, which stdio starts, lists its overview too.
      const overview = transport === 'stdio' ? 1 : 0
      expect(result?.resources).toHaveLength(sampleSize.resources + overview)
    })

    if (transport === 'stdio')
      row('lists and reads a source of another package', async () => {
        const own = join(home, era)
        mkdirSync(own)
        const { command, args } = serveCommand('--config', writeOwnSource(own))
        const ask = async (method: string, ...more: readonly string[]) => {
          const asked = [
            '--transport',
            'stdio',
            '--protocol-era',
            era,
            '--method',
            method,
            ...more,
            '--',
            command,
            ...args,
          ]
          return (await run('mcp-inspector', ['--cli', '-q', '--format', 'json', ...asked])).stdout
        }
        expect(await ask('resources/list')).toContain('notes://me/Shopping-list.md')
        expect(await ask('resources/read', '--uri', 'notes://me/Shopping-list.md')).toContain('plums')
      })

    row('lists the templates', async () => {
      const { result } = await call('resources/templates/list')
      expect(result?.resourceTemplates).toContainEqual(
        expect.objectContaining({ uriTemplate: `${sampleAddress}/{+path}` }),
      )
    })

    row('reads text and bytes, and gets an error for an absent resource', async () => {
      const [text, bytes, nothing] = await Promise.all(
        ['readme.md', 'pixel.png', 'absent'].map((path) => call('resources/read', '--uri', `${sampleAddress}/${path}`)),
      )
      expect(text).toMatchObject({ result: { contents: [{ mimeType: 'text/markdown', text: '# Sample\n' }] } })
      expect(bytes).toMatchObject({ result: { contents: [{ mimeType: 'image/png', blob: pixel }] } })
      expect(nothing).toMatchObject({ code: 1, error: { message: expect.stringContaining('Resource not found') } })
    })
  })

  // One era over each transport.
  const shells = [
    ['http', 'legacy'],
    ['http', 'modern'],
    ['stdio', 'modern'],
    ['stdio', 'legacy'],
  ] as const
  describe.each([...someOf('its shell', shells, 2, volume / 2)])('as mcpdo over %s, era %s', (transport, era) => {
    const name = `${transport}-${era}`
    const mcpdo = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await run('mcpdo', ['--format', 'json', '--plain', ...args])
      return code === 0 ? (JSON.parse(stdout) as unknown) : stderr
    }

    beforeAll(async () => {
      const { options, target } = places[transport]()
      await mcpdo('connect', `@${name}`, ...options, '--era', era, ...target)
    })

    afterAll(async () => {
      await mcpdo('disconnect', `@${name}`)
    })

    test('completes a path of a template', async () => {
      const complete = (value: string) =>
        mcpdo(
          ...['--connection', name, 'prompts/complete', '--complete-ref-type', 'ref/resource'],
          ...['--complete-ref', `${sampleAddress}/{+path}`, '--complete-arg-name', 'path'],
          ...['--complete-arg-value', value],
        )
      expect(await complete('ma')).toMatchObject({ values: ['many/'] })
      expect(await complete('many/0799')).toMatchObject({ values: ['many/0799.txt'], hasMore: false })
    })
  })
})
