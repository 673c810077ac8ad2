import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Running, start } from '../support/cli.ts'
import { authority } from '../support/database-tls.ts'
import { type EraNotification, eras } from '../support/era-clients.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'
import { freePort, hasProxy, type ReverseProxy, startProxy } from '../support/reverse-proxy.ts'

/** The files of `deploy/`, as docs/operations.md gives them to operators. */
const deploy = join(import.meta.dirname, '../../deploy')

describe.each(['nginx', 'caddy'] as const)('behind %s', (name) => {
  requires(
    name,
    hasProxy(name),
    `${name} is not installed`,
  )('a server', () => {
    const folder = createFolder()
    let server: Running
    let proxy: ReverseProxy

    beforeAll(async () => {
      // The authority of the certificate is of these tests; clients in this process would have to be started anew to know it.
      vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
      folder.write({ 'site/a.md': '# A\n', 'site/large.txt': 'x'.repeat(900_000) })
      const port = await freePort()
      const config = {
        mounts: { 'file:///site': { provider: 'files', root: join(folder.root, 'site') } },
        http: {
          listen: '127.0.0.1:0',
          // nginx passes on the name alone, Caddy the port with it.
          allowedHosts: ['localhost', `localhost:${port}`],
          metrics: true,
          limits: { newConnections: 0, badTokens: 0 },
        },
      }
      writeFileSync(join(folder.outside, 'hikidashi.json'), JSON.stringify(config))
      server = start(['serve', '--config', join(folder.outside, 'hikidashi.json')], { cwd: folder.outside })
      const [, upstream] = await server.says(/http:\/\/127\.0\.0\.1:(\d+)\/mcp/)
      proxy = await startProxy(name, port, Number(upstream))
    })
    afterAll(async () => {
      await proxy.close()
      server.child.kill('SIGTERM')
      await server.ended
      folder.remove()
      vi.unstubAllEnvs()
    })

    // 2024-11-05 has a transport of its own, which is off by default.
    test.each(eras.slice(1))('lets the client $name list, read, and be notified of a change', async (era) => {
      const { client, revision } = await era.connect({ url: `${proxy.url}/mcp` })
      expect(revision).toBe(era.revision)
      const { resources } = await client.listResources()
      expect(resources.map(({ uri }) => uri)).toContain('file:///site/a.md')
      const { contents } = await client.readResource({ uri: 'file:///site/large.txt' })
      expect(contents).toMatchObject([{ text: 'x'.repeat(900_000) }])

      const heard: EraNotification[] = []
      client.fallbackNotificationHandler = async (notification) => void heard.push(notification)
      const uri = 'file:///site/a.md'
      if (era.revision === '2026-07-28') await client.listen?.({ resourceSubscriptions: [uri] })
      else await client.subscribeResource({ uri })
      folder.write({ 'site/a.md': `# A for ${era.name}\n` })
      await expect.poll(() => heard.map(({ params }) => params?.uri)).toContain(uri)
      await client.close()
    })

    test('has a valid certificate, and does not publish probes and metrics', async () => {
      const script = `for (const path of ['/healthz', '/readyz', '/metrics', '/mcp'])
        console.log((await fetch(${JSON.stringify(proxy.url)} + path)).status)`
      const file = join(folder.outside, 'ca.pem')
      writeFileSync(file, authority)
      const env = { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: '1', NODE_EXTRA_CA_CERTS: file }
      const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], { env, encoding: 'utf8' })
      // GET opens a stream of a session, of which none was named.
      expect(printed.trim().split('\n')).toEqual(['404', '404', '404', '400'])
    })

    test('gives no MCP answer to a host name that is not allowed', async () => {
      const initialize = JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } },
      })
      const ask = (host: string) =>
        new Promise<string>((resolve, reject) => {
          const headers = {
            Host: host,
            'Content-Type': 'application/json',
            Accept: 'application/json, text/event-stream',
          }
          const sent = request(
            `${proxy.url}/mcp`,
            { method: 'POST', headers, servername: 'localhost' },
            async (response) => {
              let text = ''
              for await (const part of response.setEncoding('utf8')) text += part
              resolve(text)
            },
          )
          sent.on('error', reject)
          sent.end(initialize)
        })
      expect(await ask(new URL(proxy.url).host)).toContain('"protocolVersion"')
      expect(await ask('other.example')).not.toContain('protocolVersion')
    })
  })
})

describe('the dashboard for Grafana', () => {
  test('queries only metrics that the server has', async () => {
    const dashboard = readFileSync(join(deploy, 'grafana.json'), 'utf8')
    const asked = new Set([...dashboard.matchAll(/\b(?:hikidashi|process|nodejs)_[a-z0-9_]+\b/g)].map(([name]) => name))
    const folder = createFolder()
    folder.write({ 'a.md': '# A\n' })
    writeFileSync(
      join(folder.outside, 'hikidashi.json'),
      JSON.stringify({
        mounts: { 'file:///a': { provider: 'files', root: folder.root } },
        http: { listen: '127.0.0.1:0', metrics: true },
      }),
    )
    const server = start(['serve', '--config', join(folder.outside, 'hikidashi.json')], { cwd: folder.outside })
    try {
      const [, origin] = await server.says(/(http:\/\/127\.0\.0\.1:\d+)\/mcp/)
      const told = await (await fetch(`${origin}/metrics`)).text()
      const names = new Set([...told.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name))
      expect([...asked].filter((name) => !names.has(name))).toEqual([])
      expect(asked).toContain('hikidashi_refused_total')
    } finally {
      server.child.kill('SIGTERM')
      await server.ended
      folder.remove()
    }
  })
})
