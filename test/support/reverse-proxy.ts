import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { identity } from './database-tls.ts'

export type ProxyName = 'nginx' | 'caddy'

/** A reverse proxy of `deploy/`, on a free port of the loopback interface, with a certificate for `localhost`. */
export interface ReverseProxy {
  /** `https://localhost:PORT`. */
  readonly url: string
  readonly pid: number
  close(): Promise<void>
}

/** Debian keeps nginx in a folder that only root has in its path. */
const path = `${process.env.PATH ?? ''}:/usr/sbin`
const deploy = join(import.meta.dirname, '../../deploy')

/** Whether the command is installed. */
export function hasProxy(name: ProxyName): boolean {
  try {
    execFileSync(name, [name === 'nginx' ? '-v' : 'version'], { stdio: 'ignore', env: { ...process.env, PATH: path } })
    return true
  } catch {
    return false
  }
}

export interface ReplicasProxyOptions {
  /**
   * Whether one address may send as many requests as many addresses may, for tests in which all clients are one process. Each
   * answer then names its replica in {@link upstreamHeader}.
   */
  readonly forMany?: boolean
}

/** Header with the `address:port` of the replica that answered, or of several tried ones. */
export const upstreamHeader = 'x-upstream'

/** Starts nginx with `deploy/nginx-replicas.conf` in front of three replicas. */
export function startProxyOfReplicas(
  port: number,
  upstreamPorts: readonly number[],
  { forMany = false }: ReplicasProxyOptions = {},
): Promise<ReverseProxy> {
  return startWith('nginx', port, (folder) => {
    const text = readFileSync(join(deploy, 'nginx-replicas.conf'), 'utf8')
    const changed = forMany
      ? replaced(text, [
          ['limit_conn connections 128;', `add_header ${upstreamHeader} $upstream_addr always;`],
          ['limit_req zone=requests burst=500 nodelay;', ''],
        ])
      : text
    return writeNginx(folder, port, replacedPorts(changed, upstreamPorts))
  })
}

/** Replaces the ports 8787, 8788 and so on by those of replicas. */
function replacedPorts(text: string, ports: readonly number[]): string {
  return text.replaceAll(/127\.0\.0\.1:(878\d)/g, (_, port) => `127.0.0.1:${ports[Number(port) - 8787]}`)
}

/** Starts a proxy with the file of `deploy/`, in which only names, ports and paths are replaced. It listens at `port`. */
export function startProxy(name: ProxyName, port: number, upstreamPort: number): Promise<ReverseProxy> {
  if (name === 'caddy') return startWith(name, port, (folder) => writeCaddy(folder, port, upstreamPort))
  const text = readFileSync(join(deploy, 'nginx.conf'), 'utf8')
  return startWith(name, port, (folder) => writeNginx(folder, port, replacedPorts(text, [upstreamPort])))
}

async function startWith(
  name: ProxyName,
  port: number,
  write: (folder: string) => readonly string[],
): Promise<ReverseProxy> {
  const folder = mkdtempSync(join(tmpdir(), `hikidashi-${name}-`))
  // The worker processes of nginx run as another user.
  chmodSync(folder, 0o755)
  const [certificate, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  writeFileSync(certificate, identity.cert)
  writeFileSync(key, identity.key)
  const args = write(folder)
  const env = { ...process.env, PATH: path, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, HOME: folder }
  const child = spawn(name, args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await waitForPort(port, child, () => errors)
  return {
    url: `https://localhost:${port}`,
    pid: child.pid ?? 0,
    close: async () => {
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

function writeNginx(folder: string, port: number, configuration: string): readonly string[] {
  for (const name of ['logs', 'body', 'proxy']) mkdirSync(join(folder, name))
  const text = replaced(configuration, [
    ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
    ['server_name context.example.org', 'server_name localhost'],
    ['/etc/hikidashi/tls.crt', join(folder, 'tls.crt')],
    ['/etc/hikidashi/tls.key', join(folder, 'tls.key')],
    ['pid /run/nginx.pid', `pid ${join(folder, 'nginx.pid')}`],
    ['/var/log/nginx/error.log', join(folder, 'logs/error.log')],
    ['/var/log/nginx/access.log', join(folder, 'logs/access.log')],
    ['/var/lib/nginx/body', join(folder, 'body')],
    ['/var/lib/nginx/proxy', join(folder, 'proxy')],
  ])
  writeFileSync(join(folder, 'nginx.conf'), text)
  return ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'logs/error.log'), '-g', 'daemon off;']
}

function writeCaddy(folder: string, port: number, upstreamPort: number): readonly string[] {
  const text = replaced(readFileSync(join(deploy, 'Caddyfile'), 'utf8'), [
    ['127.0.0.1:8787', `127.0.0.1:${upstreamPort}`],
    // No certificate is fetched here, no administration endpoint is opened, and idle connections do not delay the end.
    [
      '\ncontext.example.org {',
      `\n{\n\tadmin off\n\tauto_https off\n\tgrace_period 1s\n}\nhttps://localhost:${port} {\n\tbind 127.0.0.1\n\ttls ${folder}/tls.crt ${folder}/tls.key`,
    ],
  ])
  writeFileSync(join(folder, 'Caddyfile'), text)
  return ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile']
}

/** Replaces each text, which occurs exactly once. */
function replaced(text: string, changes: readonly (readonly [string, string])[]): string {
  return changes.reduce((result, [from, to]) => {
    if (result.split(from).length !== 2) throw new Error(`${JSON.stringify(from)} does not occur exactly once.`)
    return result.replace(from, () => to)
  }, text)
}

/** Returns a free port of the loopback interface. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

/**
 * Returns free ports of the loopback interface that the system gives to no connection, so that a restarted process finds its port
 * free.
 */
export async function steadyPorts(count: number): Promise<readonly number[]> {
  const found = new Set<number>()
  while (found.size < count) {
    const port = 15_000 + Math.floor(Math.random() * 15_000)
    if (await isFree(port)) found.add(port)
  }
  return [...found]
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

async function waitForPort(port: number, child: ChildProcess, errors: () => string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`The proxy ended: ${errors()}`)
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true))
      socket.on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (isOpen) return
    await sleep(20)
  }
}
