// A host of MCP Apps in a browser, built from the official package. It runs in the page that test/support/app-host.ts serves.
import { Client } from '@modelcontextprotocol/client'
import { AppBridge, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge'

/** Creates a transport to the server, which the test runs. */
function createTransport() {
  const transport = {
    start: async () => {
      window.fromServer = (message) => transport.onmessage?.(message)
    },
    send: (message) => window.toServer(message),
    close: async () => transport.onclose?.(),
  }
  return transport
}

const seen = { contexts: [], links: [], methods: [], sizes: [], modes: [], files: [] }
window.seen = seen
window.host = {}

/** Connects to the server, calls the tool, and shows its app. */
window.openHost = async ({ tool, args, context, capabilities }) => {
  const client = new Client(
    { name: 'test-host', version: '1' },
    {
      capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } },
    },
  )
  await client.connect(createTransport())
  const { tools } = await client.listTools()
  const uri = tools.find(({ name }) => name === tool)?._meta?.ui?.resourceUri
  const { contents } = await client.readResource({ uri })
  const [{ text, _meta }] = contents
  const frame = document.getElementById('sandbox')
  const bridge = new AppBridge(client, { name: 'test-host', version: '1' }, capabilities, { hostContext: context })
  window.host = { bridge, client }
  bridge.onupdatemodelcontext = async (params) => {
    seen.contexts.push(params)
    return {}
  }
  bridge.onopenlink = async ({ url }) => {
    seen.links.push(url)
    return {}
  }
  bridge.ondownloadfile = async ({ contents: files }) => {
    seen.files.push(...files)
    return {}
  }
  bridge.onsizechange = ({ width, height }) => {
    seen.sizes.push({ width, height })
    if (height !== undefined) frame.style.height = `${height}px`
  }
  bridge.onrequestdisplaymode = async ({ mode }) => {
    seen.modes.push(mode)
    return { mode }
  }
  addEventListener('message', ({ data }) => {
    if (typeof data?.method === 'string') seen.methods.push(data.method)
  })
  const isReady = new Promise((resolve) => {
    bridge.onsandboxready = resolve
  })
  const isMet = new Promise((resolve) => {
    bridge.oninitialized = resolve
  })
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow))
  frame.src = frame.dataset.src
  await isReady
  await bridge.sendSandboxResourceReady({ html: text, csp: _meta?.ui?.csp })
  await isMet
  await bridge.sendToolInput({ arguments: args })
  await bridge.sendToolResult(await client.callTool({ name: tool, arguments: args }))
  return { uri, meta: _meta }
}
