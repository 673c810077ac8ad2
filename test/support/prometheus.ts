import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Whether Prometheus and promtool are installed. */
export const hasPrometheus = ['prometheus', 'promtool'].every((name) => {
  try {
    execFileSync(name, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})

export const noPrometheus = 'prometheus and promtool are not on PATH'

export interface PrometheusOptions {
  /** Stored samples in the OpenMetrics format, each with its time, ending in `# EOF`. */
  readonly history?: string
  /** Further configuration, in YAML. */
  readonly config?: string
  /** Other files beside its configuration. */
  readonly files?: Readonly<Record<string, string>>
  readonly args?: readonly string[]
}

/** A running Prometheus with its own port. */
export interface RunningPrometheus {
  readonly url: string
  readonly pid: number
  signal(name: NodeJS.Signals): void
  /** Kills it, and keeps its data. */
  kill(): Promise<void>
  /** Starts it again on the same port. */
  start(): Promise<void>
  /** Stops it, and removes its data. */
  remove(): Promise<void>
}

export async function startPrometheus(options: PrometheusOptions = {}): Promise<RunningPrometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-prometheus-'))
  const data = join(folder, 'data')
  writeFileSync(join(folder, 'prometheus.yml'), options.config ?? 'global: { scrape_interval: 15s }\n')
  for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(folder, name), text)
  if (options.history !== undefined) {
    writeFileSync(join(folder, 'history.om'), options.history)
    execFileSync('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', join(folder, 'history.om'), data], {
      stdio: 'ignore',
    })
  }
  let child: ChildProcess | undefined
  let ended: Promise<unknown> = Promise.resolve()
  let port = 0

  const launch = async (): Promise<boolean> => {
    const args = [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${data}`,
      '--storage.tsdb.retention.time=365d',
      `--web.listen-address=127.0.0.1:${port}`,
      ...(options.args ?? []),
    ]
    const own = spawn('prometheus', args, { stdio: 'ignore' })
    child = own
    ended = new Promise((resolve) => own.once('close', resolve))
    for (let attempt = 0; attempt < 3000; attempt++) {
      if (own.exitCode !== null || own.signalCode !== null) return false
      if (await isReady(port)) return true
      await sleep(20)
    }
    return false
  }
  const kill = async () => {
    child?.kill('SIGKILL')
    await ended
  }
  // Another process may take a port before it is used.
  for (let attempt = 0; attempt < 5; attempt++) {
    port = await freePort()
    if (await launch()) break
    await kill()
    if (attempt === 4) throw new Error('Prometheus does not start')
  }
  return {
    url: `http://127.0.0.1:${port}`,
    get pid() {
      return child?.pid ?? 0
    },
    signal: (name) => void child?.kill(name),
    kill,
    start: async () => {
      if (!(await launch())) throw new Error('Prometheus does not come back')
    },
    remove: async () => {
      // A stopped process does not receive other signals.
      child?.kill('SIGCONT')
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function isReady(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/-/ready`, { signal: AbortSignal.timeout(5000) })
    await response.arrayBuffer()
    return response.status === 200
  } catch {
    return false
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** A metric with its history. */
export interface PastMetric {
  readonly name: string
  readonly type: 'gauge' | 'counter'
  readonly help?: string
  readonly unit?: string
  readonly series: readonly {
    readonly labels: Readonly<Record<string, string>>
    /** Returns the value at a time, in seconds since 1970; `undefined`: no sample. */
    readonly at: (time: number, index: number) => number | undefined
  }[]
}

/** Formats a history, with a sample of every metric at every step. */
export function openMetrics(metrics: readonly PastMetric[], start: number, end: number, step: number): string {
  const lines: string[] = []
  for (const { name, type, help, unit, series } of metrics) {
    // OpenMetrics has the suffix of a counter at its samples only.
    const family = type === 'counter' ? name.replace(/_total$/, '') : name
    lines.push(`# TYPE ${family} ${type}`)
    if (unit !== undefined) lines.push(`# UNIT ${family} ${unit}`)
    if (help !== undefined) lines.push(`# HELP ${family} ${help}`)
    for (const { labels, at } of series) {
      const written = Object.entries(labels).map(([key, value]) => `${key}=${JSON.stringify(value)}`)
      for (let time = start, index = 0; time <= end; time += step, index++) {
        const value = at(time, index)
        if (value !== undefined) lines.push(`${name}{${written.join(',')}} ${value} ${time}`)
      }
    }
  }
  return `${lines.join('\n')}\n# EOF\n`
}
