import { createServer } from 'node:http'
import { join } from 'node:path'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { FrameLocator, Page } from 'playwright-core'
import { build } from 'rolldown'
import type { OpenOptions, Tabs } from './browser.ts'
import { main } from './cli.ts'
import { type Listening, listening } from './listening.ts'

// A host of MCP Apps in a real browser, with the bridge of the official package and the sandbox of the specification.

/** The policy of a host for an app that declares no origins (MCP Apps, "Restrictive Default"). */
const policy = [
  ...["default-src 'none'", "script-src 'self' 'unsafe-inline'", "style-src 'self' 'unsafe-inline'"],
  ...["img-src 'self' data:", "media-src 'self' data:", "object-src 'none'", "connect-src 'none'", "base-uri 'self'"],
].join('; ')

/** The sandbox passes messages between the host and the app. It has no origin, so it cannot store anything. */
const sandbox = `<!doctype html><html lang="en"><title>Sandbox</title>
<style>html,body{height:100%;margin:0}iframe{display:block;width:100%;height:100%;border:0}</style>
<script>
let inner
addEventListener('message', ({ source, data }) => {
  if (source === parent && data.method === 'ui/notifications/sandbox-resource-ready') {
    inner = document.createElement('iframe')
    inner.title = 'App'
    inner.setAttribute('sandbox', 'allow-scripts')
    inner.srcdoc = data.params.html
    document.body.append(inner)
  } else if (source === parent) inner?.contentWindow.postMessage(data, '*')
  else if (source === inner?.contentWindow) parent.postMessage(data, '*')
})
addEventListener('load', () => parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/sandbox-proxy-ready', params: {} }, '*'))
</script><body></body></html>`

export interface AppHost {
  /** Opens a host in the browser, with the app of the tool. */
  open(options?: AppHostOptions): Promise<OpenedApp>
  end(): Promise<void>
}

export interface AppHostOptions extends OpenOptions {
  readonly args?: Readonly<Record<string, unknown>>
  /** Facts of the host around the app. */
  readonly context?: Readonly<Record<string, unknown>>
  readonly capabilities?: Readonly<Record<string, unknown>>
}

export interface OpenedApp {
  readonly page: Page
  /** The document of the app. */
  readonly app: FrameLocator
  readonly uri: string
  readonly meta: unknown
  /** Messages to the host: updates of the context, links, and requested files. */
  seen(): Promise<Seen>
}

export interface Seen {
  readonly contexts: readonly {
    readonly content?: readonly Readonly<Record<string, unknown>>[]
    readonly structuredContent?: Readonly<Record<string, unknown>>
  }[]
  readonly links: readonly string[]
  readonly methods: readonly string[]
  readonly sizes: readonly { readonly width?: number; readonly height?: number }[]
  readonly modes: readonly string[]
  readonly files: readonly unknown[]
}

const everything = {
  serverTools: {},
  serverResources: { listChanged: true },
  openLinks: {},
  downloadFile: {},
  updateModelContext: { text: {}, resourceLink: {} },
}

/** Starts the pages of the host. Each opened app has a server of its own: `hikidashi serve … --stdio`. */
export async function startAppHost(
  tabs: Pick<Tabs, 'profile'>,
  serve: readonly string[],
  cwd: string,
): Promise<AppHost> {
  const script = await bundled()
  const outside = await listening(
    createServer((_request, response) => {
      response.setHeader('content-type', 'text/html; charset=utf-8')
      response.setHeader('content-security-policy', policy)
      response.end(sandbox)
    }),
  )
  const host: Listening = await listening(
    createServer((request, response) => {
      const isScript = request.url === '/page.js'
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8')
      response.end(isScript ? script : hostPage(outside.port))
    }),
  )
  const transports: StdioClientTransport[] = []
  return {
    open: async ({ args = {}, context = {}, capabilities = everything, ...options } = {}) => {
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: [main, 'serve', ...serve, '--stdio', '--log-level', 'error'],
        cwd,
      })
      transports.push(transport)
      const page = await (await tabs.profile(options)).newPage()
      transport.onmessage = (message) => {
        page.evaluate((one) => (globalThis as unknown as Way).fromServer(one), message).catch(() => {})
      }
      const ended = new Promise<void>((resolve) => {
        transport.onclose = resolve
      })
      await transport.start()
      await page.exposeFunction('toServer', (message: Parameters<typeof transport.send>[0]) => transport.send(message))
      await page.goto(`http://127.0.0.1:${host.port}/`)
      const asked = { tool: 'browse', args, context, capabilities }
      const opened = await Promise.race([
        page.evaluate((given) => (globalThis as unknown as Way).openHost(given), asked),
        ended.then(() => {
          throw new Error('The server ended before the app was open.')
        }),
      ])
      return {
        page,
        app: page.frameLocator('#sandbox').frameLocator('iframe'),
        ...opened,
        seen: () => page.evaluate(() => (globalThis as unknown as Way).seen),
      }
    },
    end: async () => {
      await Promise.all([...transports.map((one) => one.close()), host.close(), outside.close()])
    },
  }
}

/** Members that `app-host/page.mjs` adds to `window`. */
interface Way {
  readonly fromServer: (message: unknown) => void
  readonly openHost: (given: unknown) => Promise<{ readonly uri: string; readonly meta: unknown }>
  readonly seen: Seen
}

function hostPage(sandboxPort: number): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,"><title>Host</title>
<style>html,body{height:100%;margin:0}iframe{display:block;width:100%;height:100%;border:0}</style>
<body><iframe id="sandbox" title="Sandbox" data-src="http://127.0.0.1:${sandboxPort}/"></iframe>
<script type="module" src="/page.js"></script></body></html>`
}

async function bundled(): Promise<string> {
  const { output } = await build({
    input: join(import.meta.dirname, 'app-host/page.mjs'),
    platform: 'browser',
    write: false,
    output: { format: 'es', codeSplitting: false },
  })
  return output[0].code
}
