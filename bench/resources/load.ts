import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Sent } from './client.ts'
import { latencyOf } from './latency.ts'
import type { Running } from './running.ts'

/** Throughput, cost and latency of a server under load. */
export interface Load {
  readonly perSecond: number
  /** CPU time of the server for each request, in microseconds. */
  readonly cpu: number
  /** Latency in milliseconds, on connections that are already open. */
  readonly p50: number
  readonly p99: number
}

export interface LoadOptions {
  /** Requests that are sent in turn, repeatedly. `idMark`, their id, is replaced by a unique number. */
  readonly requests: readonly Sent[]
  /** Minimum average size of an answer, in bytes. Errors are shorter. */
  readonly minBytes: number
  readonly connections: number
  readonly seconds: number
  /** Duration of the same load before the measurement, in seconds. Default: 1. */
  readonly warmUpSeconds?: number
  readonly temporary: string
}

/** Placeholder for the id of a request. A session refuses an id that is in flight, so each request gets a unique one. */
export const idMark = '@id@'
/** Minimum number of prepared requests, each with its own id. Fewer than that are in flight at any time. */
const minPrepared = 1000

const quoted = (text: string) => JSON.stringify(text).replaceAll('\\u', '\\\\u')

/** Returns the script for wrk. It prepares the requests, sends them in turn, and prints one line of numbers at the end. */
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
  for id = 1, ${Math.max(minPrepared, requests.length)} do
    local kind = kinds[(id - 1) % #kinds + 1]
    ready[id] = wrk.format("POST", wrk.path, kind.headers, (kind.body:gsub('"${idMark}"', tostring(id))))
  end
end
request = function()
  at = at % #ready + 1
  return ready[at]
end
done = function(summary)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  local numbers = { summary.requests, summary.duration, summary.bytes, failed }
  print("bench " .. table.concat(numbers, " "))
end
`

/** Sends requests with wrk, which measures throughput and cost, and then with {@link latencyOf}, which measures the latency. */
export async function load(running: Pick<Running, 'url' | 'cpuMs'>, options: LoadOptions): Promise<Load> {
  const { requests, connections, seconds, warmUpSeconds = 1 } = options
  // Warm up, because V8 compiles the code of the server while it runs.
  await costOf(running, { ...options, seconds: warmUpSeconds })
  const cost = await costOf(running, options)
  return { ...cost, ...(await latencyOf({ url: running.url, requests, connections, seconds, warmUpSeconds })) }
}

/** Sends requests with wrk, without a warm-up, and measures throughput and cost. */
export async function costOf(
  running: Pick<Running, 'url' | 'cpuMs'>,
  { requests, minBytes, connections, seconds, temporary }: LoadOptions,
): Promise<Pick<Load, 'perSecond' | 'cpu'>> {
  const script = join(temporary, `${process.pid}-${Math.random().toString(36).slice(2)}.lua`)
  writeFileSync(script, scriptOf(new URL(running.url).pathname, requests))
  try {
    const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '20s', '-s', script, running.url]
    const before = running.cpuMs()
    const { stdout } = await promisify(execFile)('wrk', args)
    const cpuMs = running.cpuMs() - before
    const [count, micros, bytes, failed] = (/^bench (.*)$/m.exec(stdout)?.[1] ?? '').split(' ').map(Number)
    if (count === undefined || micros === undefined || !count) throw new Error(`wrk says:\n${stdout}`)
    if (failed !== 0) throw new Error(`${failed} of ${count} requests failed.`)
    if (Number(bytes) / count < minBytes) throw new Error(`An answer has ${Number(bytes) / count} bytes.`)
    return { perSecond: count / (micros / 1e6), cpu: (cpuMs * 1000) / count }
  } finally {
    rmSync(script)
  }
}
