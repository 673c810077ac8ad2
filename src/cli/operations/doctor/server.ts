import { request } from 'node:http'
import { childLimits } from '../../../core/kit/child-limits.ts'
import type { Log } from '../../../core/log.ts'
import { isLoopback } from '../../../core/uri.ts'
import type { Findings } from '../../commands/doctor.ts'
import { type SourceOptions, serverTarget } from '../source.ts'

/** Time-out of an answer of a server, in milliseconds, and maximum length of an answer. */
const timeoutMs = 15_000
const maxBytes = 10 * 1024 * 1024
/** Tolerated difference of the clocks, in milliseconds. */
const maxSkew = 60_000

/** Checks a server like a strict client. */
export async function checkServer(options: SourceOptions, { tell, doing }: Findings, log: Log): Promise<void> {
  const target = serverTarget(options)
  const where = 'url' in target ? shownUrl(target.url) : target.command
  doing(`Asking ${where}`)
  if ('url' in target) await checkClock(target.url, tell)
  const { examine } = await import('../../../client/examine.ts')
  const signal = new AbortController().signal
  const { memoryBytes } = childLimits.remoteCommand()
  await examine(target, { timeoutMs, maxBytes, memoryBytes, stderr: 'log', signal, log }, (examined) => {
    doing(`Asking ${where}: ${examined.check}`)
    tell(examined)
  })
  if ('url' in target) await checkGuard(target.url, tell)
}

/**
 * Whether a server on this machine accepts requests that a web page can send with a name that resolves to this machine (DNS
 * rebinding). If it does, any open web page can read everything.
 */
async function checkGuard(url: string, tell: Findings['tell']): Promise<void> {
  const { protocol, hostname } = new URL(url)
  if (protocol !== 'http:' || !isLoopback(hostname.replace(/^\[|\]$/g, ''))) return
  const status = await statusFor(url, { host: 'rebound.example', origin: 'http://rebound.example' })
  if (status === undefined) return
  const check = 'guard'
  if (status >= 400) return tell({ check, status: 'ok', found: 'A foreign Host and Origin are refused' })
  tell({
    check,
    status: 'warning',
    found: 'It takes any Host and Origin: a web page that is open on this machine could read what it serves.',
    fix: 'Have it check both headers, or put it behind hikidashi: { "provider": "remote", "url": … }',
  })
}

/** The HTTP status of an answer; `undefined` if there is no answer. */
function statusFor(url: string, headers: Readonly<Record<string, string>>): Promise<number | undefined> {
  const type = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  return new Promise((resolve) => {
    const asking = request(url, { method: 'POST', headers: { ...type, ...headers }, timeout: 5000 }, (response) => {
      resolve(response.statusCode)
      response.destroy()
    })
    asking.on('timeout', () => asking.destroy())
    asking.on('error', () => resolve(undefined))
    const clientInfo = { name: 'hikidashi-doctor', version: '1' }
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }
    asking.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }))
  })
}

async function checkClock(url: string, tell: Findings['tell']): Promise<void> {
  try {
    const response = await fetch(url, { method: 'HEAD', redirect: 'manual', signal: AbortSignal.timeout(5000) })
    const date = Date.parse(response.headers.get('date') ?? '')
    if (Number.isNaN(date)) return
    const skew = Date.now() - date
    if (Math.abs(skew) <= maxSkew) return
    const words = `${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? 'ahead of' : 'behind'}`
    tell({
      check: 'clock',
      status: 'warning',
      found: `The clock here is ${words} that of the server: tokens may be refused.`,
      fix: 'Set both clocks, as by NTP.',
    })
  } catch {
    // Another check reports whether it can be reached.
  }
}

/** A URL without possible secrets. */
function shownUrl(url: string): string {
  return URL.canParse(url) ? `${new URL(url).origin}${new URL(url).pathname}` : 'the server'
}
