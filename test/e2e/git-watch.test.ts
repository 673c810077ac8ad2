import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { main, type Running, start } from '../support/cli.ts'
import { createGitFolder, type GitFolder, type GitRepository } from '../support/git.ts'
import { eventually } from '../support/watching.ts'

let folder: GitFolder
let repository: GitRepository
let config: string
let server: Running | undefined
let client: Client

beforeEach(async () => {
  folder = createGitFolder()
  repository = folder.repository('repository')
  repository.write('file.txt', 'one\n')
  repository.commit('first')
  config = join(folder.path, 'hikidashi.json')
  const mounts = { 'git://app': { provider: 'git', repository: 'repository' } }
  await writeFile(config, JSON.stringify({ mounts, http: { listen: '127.0.0.1:0' } }))
})

afterEach(async () => {
  await client.close()
  server?.child.kill('SIGTERM')
  await server?.ended
  server = undefined
  folder.dispose()
})

const uri = 'git://app/HEAD/file.txt'

const transports = {
  stdio: async () =>
    new StdioClientTransport({
      command: process.execPath,
      args: [main, 'serve', '--config', config, '--stdio'],
      stderr: 'ignore',
    }),
  HTTP: async () => {
    server = start(['serve', '--config', config], { cwd: folder.path })
    const [, url = ''] = await server.says(/serves 1 mount at (http:\S+)\n/)
    return new StreamableHTTPClientTransport(new URL(url))
  },
} as const

/** How a client of each era asks to be told. */
const eras = {
  legacy: async () => void (await client.subscribeResource({ uri })),
  auto: async () => {
    const { honoredFilter } = await client.listen({ resourceSubscriptions: [uri], resourcesListChanged: true })
    expect(honoredFilter).toEqual({ resourceSubscriptions: [uri], resourcesListChanged: true })
  },
} as const

describe.each(['stdio', 'HTTP'] as const)('over %s', (transport) => {
  test.each([
    ['of the newest revision', 'auto'],
    ['of an earlier revision', 'legacy'],
  ] as const)('a client %s is notified of a commit, and reads it', async (_, mode) => {
    client = new Client({ name: 'test', version: '0' }, { versionNegotiation: { mode } })
    const told: string[] = []
    let listed = 0
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void told.push(params.uri))
    client.setNotificationHandler('notifications/resources/list_changed', () => void listed++)
    await client.connect(await transports[transport]())
    const read = async () => {
      const [content] = (await client.readResource({ uri })).contents
      return content !== undefined && 'text' in content ? content.text : undefined
    }
    expect(await read()).toBe('one\n')
    await eras[mode]()
    for (const text of ['two\n', 'three\n']) {
      repository.write('file.txt', text)
      repository.write(`${text.trim()}.txt`, text)
      repository.commit(text)
      // After the last that it is told, the change is there. (It may be told of the one before twice.)
      let now: string | undefined
      while (now !== text) {
        await eventually(() => told.length > 0, `told of ${text}`)
        expect(new Set(told.splice(0))).toEqual(new Set([uri]))
        now = await read()
      }
    }
    await eventually(() => listed > 0, 'told that the list changed')
    const { resources } = await client.listResources()
    expect(resources.map((resource) => resource.uri)).toContain('git://app/HEAD/three.txt')
  })
})
