import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type Client, connect } from './client.ts'
import type { Contender } from './servers.ts'

/** A running server, and its use of resources. Linux only: it reads `/proc`. */
export interface Running {
  readonly url: string
  readonly client: Client
  /** Time from the start until the first answer, in milliseconds. */
  readonly startMs: number
  /** CPU time of the process until now, in milliseconds, in steps of 10. */
  cpuMs(): number
  /** Resident memory now, in MiB. */
  memory(): number
  end(): Promise<void>
}

/** Starts a server for a folder, and waits until it answers. With a token, each request carries it. */
export async function start(
  contender: Contender,
  folder: string,
  env: NodeJS.ProcessEnv,
  token?: string,
): Promise<Running> {
  const begun = performance.now()
  const child = spawn(process.execPath, [...contender.command(folder)], {
    env: { ...env, ...contender.env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const url = contender.url ?? (await urlSaid(child, contender.name))
  child.stderr?.resume()
  const client = await answering(contender, url, child, token)
  await client.call(contender.revision === '2026-07-28' ? 'server/discover' : 'ping', {})
  const { pid } = child
  return {
    url,
    client,
    startMs: performance.now() - begun,
    cpuMs: () => {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      return (Number(fields[11]) + Number(fields[12])) * 10
    },
    memory: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024,
    end: async () => {
      client.close()
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Resolves to the URL that a server writes to stderr when it listens. */
async function urlSaid(child: ChildProcess, name: string): Promise<string> {
  let said = ''
  for await (const chunk of child.stderr?.iterator({ destroyOnReturn: false }) ?? []) {
    said += String(chunk)
    const [url] = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(said) ?? []
    if (url !== undefined) return url
  }
  throw new Error(`${name} has ended: ${said}`)
}

/** Connects as soon as the port is open. */
async function answering(
  { name, revision }: Contender,
  url: string,
  child: ChildProcess,
  token: string | undefined,
): Promise<Client> {
  for (let tries = 0; tries < 2000; tries++) {
    if (child.exitCode !== null) throw new Error(`${name} has ended.`)
    try {
      return await connect(url, revision, token)
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  throw new Error(`${name} does not answer at ${url}.`)
}
