import { readFile, stat } from 'node:fs/promises'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { isAbsolute, relative } from 'node:path'
import { parseDocument } from '../../../config/document.ts'
import { type ConfigProblem, formatKey } from '../../../config/problem.ts'
import { isResourceError } from '../../../core/errors.ts'
import { failedResult, okResult, type ReportCheck, warningResult } from '../../../core/kit/diagnosis.ts'
import { childLimits } from '../../../core/kit/workers.ts'
import type { Log } from '../../../core/log.ts'
import { isLoopback } from '../../../core/uri.ts'
import { createLazyStore } from '../../../providers/source.ts'
import { readTokenFile } from '../../../server/auth/token-file.ts'
import { CommandError } from '../../terminal/exit.ts'
import { pluralize } from '../../terminal/io.ts'
import type { Secrets } from '../../terminal/secrets.ts'
import { type PlanResult, planLocalSetUp, storeSettings } from '../local.ts'
import { type SourceOptions, serverTarget } from '../source.ts'
import { formatEffects, trustCommand } from '../withheld.ts'
import type { CheckReporter } from './findings.ts'
import { type CheckContext, checkMounts, checkStore, mountsNeedingStore } from './mounts.ts'
import { checkOcr, checkPrograms, checkSecrets, reportMissingGit } from './needs.ts'

const timeoutMs = 15_000
const maxBytes = 10 * 1024 * 1024
const maxSkewMs = 60_000

/**
 * Checks a server as a strict client would; over HTTP also its clock, and on this machine its guard against web sites.
 */
export async function checkServer(
  options: SourceOptions,
  { tell, doing }: CheckReporter,
  { log, secrets }: { readonly log: Log; readonly secrets: Secrets },
): Promise<void> {
  const target = serverTarget(options, secrets)
  const where = 'url' in target ? shownUrl(target.url) : target.command
  doing(`Asking ${where}`)
  if ('url' in target) await checkClock(target.url, tell)
  const { examineServer } = await import('../../../client/examine.ts')
  const signal = new AbortController().signal
  const { memoryBytes } = childLimits.remoteCommand()
  await examineServer(
    target,
    { timeoutMs, maxBytes, memoryBytes, stderr: 'log', signal, log },
    (check, checkResult) => {
      doing(`Asking ${where}: ${check}`)
      tell(check, checkResult)
    },
  )
  if ('url' in target) await checkGuard(target.url, tell)
}

/**
 * A web page can send requests to a name that resolves to this machine (DNS rebinding). Unless the server refuses them,
 * the page can read its resources.
 */
async function checkGuard(url: string, tell: ReportCheck): Promise<void> {
  if (!URL.canParse(url)) return
  const { protocol, hostname } = new URL(url)
  if (protocol !== 'http:' || !isLoopback(hostname.replace(/^\[|\]$/g, ''))) return
  const status = await statusFor(url, { host: 'rebound.example', origin: 'http://rebound.example' })
  if (status === undefined) return
  if (status >= 400)
    return tell('guard', okResult(`A request with a foreign Host and Origin is refused (HTTP ${status})`))
  const finding =
    'The server accepts a foreign Host and Origin header: a web page that is open on this machine could read what it serves.'
  const fix = 'Make it check both headers, or put it behind hikidashi: { "provider": "remote", "url": … }'
  tell('guard', warningResult(finding, fix))
}

/** Sends `initialize` with the given headers. Returns `undefined` if there is no answer. */
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

async function checkClock(url: string, tell: ReportCheck): Promise<void> {
  try {
    const response = await fetch(url, { method: 'HEAD', redirect: 'manual', signal: AbortSignal.timeout(5000) })
    const date = Date.parse(response.headers.get('date') ?? '')
    if (Number.isNaN(date)) return
    const skew = Date.now() - date
    if (Math.abs(skew) <= maxSkewMs) return
    const words = `${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? 'ahead of' : 'behind'}`
    const finding = `The clock here is ${words} that of the server: tokens may be refused.`
    tell('clock', warningResult(finding, 'Synchronize both clocks, for example by NTP.'))
  } catch {
    // Another check reports whether the server can be reached.
  }
}

/** User, password and query are left out, because they often contain secrets. */
function shownUrl(url: string): string {
  return URL.canParse(url) ? `${new URL(url).origin}${new URL(url).pathname}` : 'the server'
}

export async function checkLocal(
  options: { readonly config?: string; readonly limit: number },
  findings: CheckReporter,
  { log, secrets }: { readonly log: Log; readonly secrets: Secrets },
): Promise<void> {
  findings.doing('Reading the configuration')
  const planned = await plan(options.config, secrets, findings)
  if (planned === undefined) return
  if ('problems' in planned) {
    tellProblems(planned.problems, findings)
    return
  }
  const { local } = planned
  const { config } = local
  const mounted = pluralize(local.mounts.length, 'mount')
  const finding =
    config === undefined
      ? 'The current folder has no hikidashi.json, so the folder itself is served. To serve more: hikidashi init'
      : `${config.file}: valid, ${mounted}`
  findings.tell('configuration', okResult(finding))
  const absent = config?.absent ?? []
  tellProblems(
    absent.map(({ problem }) => problem),
    findings,
  )
  for (const part of config?.withheld ?? []) {
    const why = `because you have not trusted this configuration: it ${formatEffects(part)}.`
    findings.tell('trust', warningResult(`${part.name} is left out, ${why}`, trustCommand(config?.file ?? '')))
  }
  const withConfig = options.config === undefined ? '' : ` --config ${options.config}`
  const positionOf = await positionsIn(config?.file)
  const here: CheckContext = {
    local,
    mounts: (await local.complete?.()) ?? local.mounts,
    limit: options.limit,
    log,
    secrets,
    positionOf,
    withConfig,
  }
  // A mount that lacks something is not opened, because that would report the same fault twice.
  const lacking = new Set([
    ...absent.map(({ address }) => address),
    ...(await checkSecrets(here, findings)),
    ...(await checkPrograms(here, findings)),
  ])
  reportMissingGit(here, findings)
  await checkOcr(here, findings)
  const storeOptions = storeSettings(local)
  const store = storeOptions === undefined ? undefined : createLazyStore(storeOptions, log)
  try {
    const isStored = await checkStore(here, store, findings)
    if (!isStored) for (const address of mountsNeedingStore(here)) lacking.add(address)
    await checkMounts(here, lacking, isStored ? store : undefined, findings)
  } finally {
    await store?.close()
  }
  await checkHttp(here, findings)
}

function tellProblems(problems: readonly ConfigProblem[], { tell }: CheckReporter): void {
  for (const { file, line, column, key, message, fix } of problems) {
    const position = line === 0 ? file : `${file}:${line}:${column}`
    tell('configuration', failedResult(`${position}: ${key === '' ? '' : `${key}: `}${message}`, fix))
  }
}

/** Reports a CommandError as a failed check, and returns `undefined`. */
async function plan(
  config: string | undefined,
  secrets: Secrets,
  { tell }: CheckReporter,
): Promise<PlanResult | undefined> {
  try {
    return await planLocalSetUp(config === undefined ? {} : { config }, secrets)
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    const fix = 'hikidashi doctor --config FILE, or: cd FOLDER && hikidashi init'
    tell('configuration', failedResult(error.message, fix))
    return undefined
  }
}

async function positionsIn(file: string | undefined): Promise<CheckContext['positionOf']> {
  if (file === undefined) return formatKey
  const { document } = parseDocument(file, await readFile(file, 'utf8'))
  const below = relative(process.cwd(), file)
  const displayPath = below.startsWith('..') || isAbsolute(below) ? file : below
  return (path) => `${displayPath}:${document.positionOf(path, 'key').line}: ${formatKey(path)}`
}

async function checkHttp(here: CheckContext, findings: CheckReporter): Promise<void> {
  const { config } = here.local
  if (config?.auth?.tokens !== undefined) await checkTokens(config.auth.tokens, here, findings)
  const listen = config?.http?.listen
  if (config === undefined || listen === undefined) return
  findings.doing('Checking the port')
  await checkPort(listen, here, findings)
  if (isLoopback(listen.host) || config.auth !== undefined) return
  findings.tell(
    'http',
    failedResult(
      `Other machines can reach ${listen.host}, but clients are not authenticated, so serve will not start.`,
      `hikidashi token add --name NAME --tokens FILE, then "auth": { "tokens": "FILE" } at ${here.positionOf(['http'])}\nOr listen on 127.0.0.1. To serve everybody all the same: hikidashi serve --insecure`,
    ),
  )
}

async function checkPort(
  { host, port }: { readonly host: string; readonly port: number },
  { positionOf, local }: CheckContext,
  { tell }: CheckReporter,
): Promise<void> {
  const where = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const code = await tryPort(host, port)
  if (code === undefined) return tell('port', okResult(`${where} is free`))
  const at = positionOf(['http', 'listen'])
  if (code === 'EADDRINUSE') {
    const look = `hikidashi doctor --url http://${where}${local.config?.http?.path ?? '/mcp'}`
    const fix = `${look}\nIf it is something else, use another port: ${at}`
    return tell('port', warningResult(`Something listens at ${where} already. It may be hikidashi itself.`, fix))
  }
  const fix =
    code === 'EACCES' && port < 1024
      ? `Use a port of 1024 or more: ${at}`
      : code === 'EADDRNOTAVAIL'
        ? `This machine has no such address. Write one that it has, or 127.0.0.1: ${at}`
        : `Change ${at}`
  tell('port', failedResult(`Nothing can listen at ${where} (${code}).`, fix))
}

/** Resolves to the error code of an attempt to listen at a port; `undefined` if the port is free. */
function tryPort(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'unknown'))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}

async function checkTokens(
  file: string,
  { positionOf, withConfig }: CheckContext,
  { tell }: CheckReporter,
): Promise<void> {
  try {
    const { tokens } = await readTokenFile(file)
    const add = `hikidashi token add --name NAME${withConfig}`
    const good = tokens.filter(({ expires }) => expires === undefined || Date.parse(expires) > Date.now())
    const mode = await stat(file).then(
      (stats) => stats.mode,
      () => 0,
    )
    if (good.length === 0)
      tell('tokens', warningResult(`${file} has no valid token, so no client can connect with one.`, add))
    else if (process.platform !== 'win32' && (mode & 0o044) !== 0)
      tell('tokens', warningResult(`Other users may read ${file}.`, `chmod 600 ${file}`))
    else {
      const over = tokens.length - good.length
      tell('tokens', okResult(`${file}: ${pluralize(good.length, 'token')}${over === 0 ? '' : `, ${over} expired`}`))
    }
  } catch (error) {
    if (!isResourceError(error)) throw error
    const fix = /chmod 600/.test(error.message)
      ? `chmod 600 ${file}`
      : `Correct ${positionOf(['http', 'auth', 'tokens'])}`
    tell('tokens', failedResult(error.message, fix))
  }
}
