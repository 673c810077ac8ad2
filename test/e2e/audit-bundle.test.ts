import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'

// `npm run audit:bundle`, against a registry of the test.

const root = join(import.meta.dirname, '../..')
let folder = ''
let registry: Server
let asked: unknown[] = []
let advisories: object = {}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hikidashi-audit-test-'))
  asked = []
  advisories = {}
  registry = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const body = Buffer.concat(parts)
      if (request.url !== '/-/npm/v1/security/advisories/bulk') return response.writeHead(404).end('{}')
      asked.push(JSON.parse((request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString()))
      return response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(advisories))
    })
  })
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  await new Promise((resolve) => registry.close(resolve))
  rmSync(folder, { recursive: true })
})

/** Audits a bill of materials with these components. */
async function audit(components: readonly object[]): Promise<{ readonly code: number; readonly said: string }> {
  const sbom = join(folder, 'sbom.json')
  writeFileSync(sbom, JSON.stringify({ components }))
  const { port } = registry.address() as { readonly port: number }
  const env = {
    ...process.env,
    npm_config_registry: `http://127.0.0.1:${port}/`,
    npm_config_fetch_retries: '0',
    npm_config_cache: join(folder, 'cache'),
  }
  const args = ['--import', 'tsx', join(root, 'scripts/audit.ts'), sbom]
  return new Promise((resolve) =>
    execFile(process.execPath, args, { cwd: root, env }, (error, _, said) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, said }),
    ),
  )
}

const components = [
  { name: 'a', version: '1.0.0' },
  { name: 'a', version: '2.0.0' },
  { name: '@b/c', version: '3.0.0' },
]

test('the audit of bundled packages asks the registry for exactly their names and versions', async () => {
  expect(await audit(components)).toEqual({ code: 0, said: '3 bundled packages, 0 with known vulnerabilities.\n' })
  expect(asked).toHaveLength(1)
  const [{ a = [], ...others } = {}] = asked as [Record<string, string[]>]
  expect([...a].sort()).toEqual(['1.0.0', '2.0.0'])
  expect(others).toEqual({ '@b/c': ['3.0.0'] })
}, 60_000)

test('a known vulnerability of a bundled package fails the audit', async () => {
  advisories = {
    '@b/c': [
      {
        ...{ id: 1, url: 'https://advisory.example', title: 'a hole', severity: 'high', vulnerable_versions: '<4' },
        ...{ cwe: [], cvss: { score: 0 } },
      },
    ],
  }
  const { code, said } = await audit(components)
  expect(said).toMatch(/high: .*a hole/)
  expect(code).toBe(1)
}, 60_000)

test('the audit of bundled packages fails if the registry does not answer, and if there are no packages', async () => {
  registry.removeAllListeners('request')
  registry.on('request', (_, response) => response.writeHead(405).end())
  const unanswered = await audit(components)
  expect(unanswered.code).toBe(2)
  expect(unanswered.said).toContain('could not be audited')
  expect((await audit([])).code).toBe(2)
}, 60_000)
