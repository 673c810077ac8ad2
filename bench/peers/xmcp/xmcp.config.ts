import type { XmcpConfig } from 'xmcp'

// The port is fixed when the server is built.
const config: XmcpConfig = {
  http: { port: Number(process.env.BENCH_PORT), host: '127.0.0.1' },
  paths: { tools: false, prompts: false, resources: 'src/resources' },
}

export default config
