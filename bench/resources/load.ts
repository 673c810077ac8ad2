import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Sent } from './client.ts'
import { latencyOf } from './latency.ts'
import type { Running } from './running.ts'

/** What a server did under load. */
export interface Load {
  readonly perSecond: number
  /** CPU time of the server for each request, in microseconds. */
  readonly cpu: number
  /** In milliseconds, on connections that are open already. */
  readonly p50: number
  readonly p99: number
}

export interface LoadOptions {
  /** Requests that are sent in turn, again and again. Their id is `idMark`: each gets a number of its own. */
  readonly requests: readonly Sent[]
  /** An answer has at least so many bytes: an error would be shorter. */
  readonly minBytes: number
  readonly connections: number
  readonly seconds: number
  /** How long the same load runs before, which does not count. Default 1 second. */
  readonly warmUpSeconds?: number
  readonly temporary: string
}

/** The id of a request in a script. A session refuses an id that is in flight, so each request has another one. */
export const idMark = '@id@'
/** Number of requests that are prepared, each with an id of its own. More are never in flight. */
const prepared = 1000

const quoted = (text: string) => JSON.stringify(text).replaceAll('\\u', '\\\\u')

/** wrk prepares the requests, and sends them in turn. At the end it prints one line of numbers. */
const scriptOf = (path: string, requests: readonly Sent[]) => `
wrk.path = ${quoted(path)}
local kinds = {
${requests
  .map(({ headers, body }) => {
    const lines = Object.entries(headers).map(([name, value]) => `[${quoted(name)}] = ${quoted(value)}`)
    return `  { headers = { ${lines.join(', ')} }, body = ${quoted(body)} },`
  })
  .join('\n')}
}
local ready = {}
local at = 0
init = function()
  for id = 1, ${prepared} do
    local kind = kinds[(id - 1) % #kinds + 1]
    ready[id] = wrk.format("POST", wrk.path, kind.headers, (kind.body:gsub('"${idMark}"', tostring(id))))
  end
end
request = function()
  at = at % ${prepared} + 1
  return ready[at]
end
done = function(summary)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  local numbers = { summary.requests, summary.duration, summary.bytes, failed }
  print("bench " .. table.concat(numbers, " "))
end
`

/** Sends requests with wrk over so many connections for some seconds, and after that with a client of its own, which measures how long each takes. */
export async function load(
  running: Pick<Running, 'url' | 'cpuMs'>,
  { requests, minBytes, connections, seconds, warmUpSeconds = 1, temporary }: LoadOptions,
): Promise<Load> {
  const script = join(temporary, `${process.pid}-${Math.random().toString(36).slice(2)}.lua`)
  writeFileSync(script, scriptOf(new URL(running.url).pathname, requests))
  try {
    const args = (duration: number) => ['-t1', `-c${connections}`, `-d${duration}s`, '--timeout', '20s', '-s', script]
    // The server is compiled while it runs: what comes first does not count.
    await promisify(execFile)('wrk', [...args(warmUpSeconds), running.url])
    const before = running.cpuMs()
    const { stdout } = await promisify(execFile)('wrk', [...args(seconds), running.url])
    const cpuMs = running.cpuMs() - before
    const [count, micros, bytes, failed] = (/^bench (.*)$/m.exec(stdout)?.[1] ?? '').split(' ').map(Number)
    if (count === undefined || micros === undefined || !count) throw new Error(`wrk says:\n${stdout}`)
    if (failed !== 0) throw new Error(`${failed} of ${count} requests failed.`)
    if (Number(bytes) / count < minBytes) throw new Error(`An answer has ${Number(bytes) / count} bytes.`)
    return {
      perSecond: count / (micros / 1e6),
      cpu: (cpuMs * 1000) / count,
      ...(await latencyOf({ url: running.url, requests, connections, seconds, warmUpSeconds })),
    }
  } finally {
    rmSync(script)
  }
}
