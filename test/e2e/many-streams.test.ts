import { writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Message } from '../guarantees/link.ts'
import { openHttp } from '../guarantees/link-http.ts'
import { type Running, start } from '../support/cli.ts'
import { createFolder } from '../support/folder.ts'
import { volumeOf } from '../support/volume.ts'

/** A server that an operator ends while many listen. */

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

/** 1,000 at full volume. */
const count = volumeOf(1000, 200)
const atOnce = 20
const uri = 'docs://shared/a.md'
const folder = createFolder()
const agent = new Agent({ keepAlive: true, maxSockets: 32 })
let server: Running
let url: string

beforeAll(async () => {
  folder.write({ 'shared/a.md': '# A\n' })
  const config = join(folder.outside, 'hikidashi.json')
  const content = {
    mounts: { 'docs://shared': { provider: 'files', root: join(folder.root, 'shared') } },
    http: {
      listen: '127.0.0.1:0',
      limits: { newConnections: 0, connections: 2 * count, connectionsPerAddress: 2 * count, drain: '2m' },
    },
  }
  writeFileSync(config, JSON.stringify(content))
  server = start(['serve', '--config', config], { cwd: folder.outside })
  ;[, url = ''] = await server.says(/(http:\/\/127\.0\.0\.1:\d+\/mcp)/)
})
afterAll(() => {
  server.child.kill('SIGKILL')
  agent.destroy()
  folder.remove()
})

test('at SIGTERM, very many streams end with their results, and the process exits with 0', async () => {
  let told = 0
  const ends: string[] = []
  const listen = async () => {
    const link = await openHttp(url, agent, '2026-07-28')
    await new Promise<void>((resolve, reject) => {
      const hear = ({ method, params }: Message) => {
        if (method === 'notifications/subscriptions/acknowledged') resolve()
        if (method === 'notifications/resources/updated' && params?.uri === uri) told++
      }
      const ended = (how: 'result' | 'cut') => {
        ends.push(how)
        reject(new Error(`a stream ended: ${how}`))
      }
      link.listen({ resourceSubscriptions: [uri] }, { hear, ended })
    })
  }
  // More at once would be more than one principal may ask at once.
  for (let at = 0; at < count; at += atOnce)
    await Promise.all(Array.from({ length: Math.min(atOnce, count - at) }, listen))
  expect(ends).toEqual([])
  folder.write({ 'shared/a.md': '# Another\n' })
  await vi.waitFor(() => expect(told).toBeGreaterThanOrEqual(count), { timeout: 120_000, interval: 50 })
  server.child.kill('SIGTERM')
  expect(await server.ended).toMatchObject({ code: 0, signal: null })
  await vi.waitFor(() => expect(ends).toHaveLength(count), { timeout: 60_000, interval: 50 })
  expect(new Set(ends)).toEqual(new Set(['result']))
})
