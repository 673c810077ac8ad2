import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Bucket, startBucket } from '../support/buckets.ts'
import { main, run, start } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import type { GcsStandIn } from '../support/gcs-stand-in.ts'
import type { S3StandIn } from '../support/s3-stand-in.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })

const recorder = fileURLToPath(new URL('../fixtures/modules/record.mjs', import.meta.url))

let folder: Folder
beforeAll(() => {
  folder = createFolder()
  folder.write({ 'docs/a.md': '# A\n' })
})
afterAll(() => folder.remove())

/** The modules that a command imports. */
async function modulesOf(args: readonly string[], record: string): Promise<string> {
  const env = { NODE_OPTIONS: `--import=${recorder}`, RECORD_MODULES: folder.at(record) }
  const { code, err } = await run(args, { cwd: folder.root, env })
  expect(code, err).toBe(0)
  return readFileSync(folder.at(record), 'utf8')
}

/** Text that the official clients send, and so their code has it, wherever the bundle has put that. */
const clients = { s3: 'aws-sdk-js', gcs: 'x-goog-api-client' } as const

/** The official clients of which code was loaded. */
function clientsIn(modules: string): readonly string[] {
  const files = [...modules.matchAll(/file:\/\/\S+\/dist\/\S+/g)].map(([url]) =>
    readFileSync(fileURLToPath(url), 'utf8'),
  )
  return Object.entries(clients).flatMap(([name, mark]) => (files.some((text) => text.includes(mark)) ? [name] : []))
}

test('a configuration without buckets loads no client for them', async () => {
  const modules = await modulesOf(['ls', '--recursive', 'docs'], 'files.modules')
  expect(modules).toContain('/providers/files/')
  expect(clientsIn(modules)).toEqual([])
  expect(modules).not.toMatch(/providers\/(?:s3|gcs|objects)\//)
})

describe.each(['s3', 'gcs'] as const)('a bucket of %s', (provider) => {
  let bucket: Bucket<S3StandIn | GcsStandIn>
  const config = `${provider}.json`

  beforeAll(async () => {
    bucket = await startBucket(provider)
    for (let i = 0; i < 300; i++) bucket.store.table.put(`many/${i}.txt`, `number ${i}`)
    bucket.store.table.put('notes/日本語.md', '# 梅雨\n')
    bucket.store.table.put('odd//key', 'out of reach')
    const mounts = { [`${provider}://drawer`]: { ...bucket.mount, poll: '200ms' } }
    folder.write({ [config]: JSON.stringify({ mounts }) })
  })
  afterAll(() => bucket.close())

  test('is checked, listed and read by the command line, which loads only its client, without warnings of Node.js', async () => {
    const modules = await modulesOf(['ls', '--recursive', '--config', config], `${provider}.modules`)
    expect(clientsIn(modules)).toEqual([provider])

    const checked = await run(['check', '--config', config], { cwd: folder.root })
    expect(checked.out).toMatch(new RegExp(`^ok +${provider}://drawer +${provider} +301 entries looked at`, 'm'))
    expect(checked.code, checked.out).toBe(0)
    expect(checked.err).not.toMatch(/NodeVersionSupportWarning|node --trace-warnings/)

    const read = await run(['read', `${provider}://drawer/notes/日本語.md`, '--config', config], { cwd: folder.root })
    expect(read).toMatchObject({ code: 0, out: '# 梅雨\n' })
    expect(read.err).not.toMatch(/Warning/)
  })

  test('is served to the official client over both transports, with changes', async () => {
    const server = start(['serve', '--config', config, '--http', '0'], { cwd: folder.root })
    const [, url = ''] = await server.says(/at (http:\/\/127\.0\.0\.1:\d+\/mcp)\n/)
    const overHttp = new Client({ name: 'test', version: '0' })
    const overStdio = new Client({ name: 'test', version: '0' })
    try {
      await overHttp.connect(new StreamableHTTPClientTransport(new URL(url)))
      await overStdio.connect(
        new StdioClientTransport({
          command: process.execPath,
          args: [main, 'serve', '--config', folder.at(config), '--stdio', '--log-level', 'error'],
        }),
      )
      for (const client of [overHttp, overStdio]) {
        const uris: string[] = []
        let cursor: string | undefined
        do {
          const page = await client.listResources(cursor === undefined ? {} : { cursor })
          uris.push(...page.resources.map(({ uri }) => uri))
          cursor = page.nextCursor
        } while (cursor !== undefined)
        expect(uris.shift()).toBe('hikidashi://overview')
        expect(new Set(uris).size).toBe(301)
        const { contents } = await client.readResource({ uri: `${provider}://drawer/many/7.txt` })
        expect(contents).toMatchObject([{ text: 'number 7', mimeType: 'text/plain' }])
        await expect(client.readResource({ uri: `${provider}://drawer/odd//key` })).rejects.toThrow()
        await expect(client.readResource({ uri: `${provider}://other/many/7.txt` })).rejects.toThrow()
      }
      const updated: string[] = []
      overStdio.setNotificationHandler('notifications/resources/updated', ({ params }) => void updated.push(params.uri))
      const uri = `${provider}://drawer/many/8.txt`
      await overStdio.subscribeResource({ uri })
      bucket.store.table.put('many/8.txt', 'changed')
      await expect.poll(() => updated, { timeout: 30_000 }).toContain(uri)
      const { contents } = await overStdio.readResource({ uri })
      expect(contents).toMatchObject([{ text: 'changed' }])
    } finally {
      await Promise.allSettled([overHttp.close(), overStdio.close()])
      server.child.kill('SIGTERM')
      await server.ended
    }
  })

  test('that does not answer makes hikidashi check fail with advice, without the credentials', async () => {
    const mount = { ...bucket.mount, endpoint: 'http://127.0.0.1:1' }
    folder.write({ 'gone.json': JSON.stringify({ mounts: { [`${provider}://gone`]: mount } }) })
    const checked = await runHere(['check', '--config', 'gone.json'], { cwd: folder.root })
    expect(checked.code).not.toBe(0)
    expect(checked.out).toContain('Nothing listens at the endpoint. Start the store, or correct "endpoint".')
    expect(checked.out + checked.err).not.toMatch(/canary-secret|PRIVATE KEY/)
  })
})
