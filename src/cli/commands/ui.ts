import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Command, InvalidArgumentError } from 'commander'
import { stateFolder } from '../../config/state-folder.ts'
import { makeFolder } from '../../core/kit/make-folder.ts'
import type { Log } from '../../core/log.ts'
import { packageVersion } from '../operations/command-line.ts'
import { addSourceOptions, type CommandSource, type SourceOptions, withSource } from '../operations/source.ts'
import { commandFailure, helpExamples, installStopHandlers, rethrowAsFailure, usageError } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'

interface UiOptions extends SourceOptions {
  readonly port: number
  readonly open: boolean
}

export function define(command: Command, io: Io): void {
  command
    .description(
      `Opens the explorer in the browser, until Ctrl-C: a page that shows the resources of this folder or of any MCP server. It
listens only on this machine. The address that it prints on stdout works in one browser only.`,
    )
    .argument('[dir...]', 'folders to show')
    .option('--port <port>', 'listen at this port; 0 is any free port', parsePort, 0)
    .option('--no-open', 'print the address, and do not open a browser')
  addSourceOptions(command)
    .addHelpText(
      ...helpExamples(`
  hikidashi ui                                            the mounts here
  hikidashi ui ~/notes
  hikidashi ui --url https://context.example.org/mcp --bearer-file ~/context-token
  hikidashi ui --command "npx -y some-mcp-server"         any MCP server with resources
  hikidashi ui --no-open --port 8800                      over ssh -L 8800:127.0.0.1:8800`),
    )
    .action((folders: readonly string[], options: UiOptions) => ui(folders, options, io))
}

function parsePort(value: string): number {
  const port = Number(value)
  if (!/^\d+$/.test(value) || port > 65_535) throw new InvalidArgumentError('Give a number from 0 to 65535.')
  return port
}

async function ui(folders: readonly string[], options: UiOptions, io: Io): Promise<void> {
  const { url, command } = options
  if (folders.length > 0 && (url !== undefined || command !== undefined))
    throw usageError('Give either folders, or one of --url and --command.')
  await withSource({ ...options, folders }, io, (source, log) => show(source, { ...options, folders }, io, log))
}

async function show(source: CommandSource, options: UiOptions, io: Io, log: Log): Promise<void> {
  const { createGuardedPage, createPageHandler } = await import('../../explorer/index.ts')
  const { serveHttp } = await import('../../server/index.ts')
  const { createAssembleTool, createAssembleTurns } = await import('../../context/tool.ts')
  const { createReadingCaches } = await import('../../context/memory.ts')
  const { remoteLimits } = await import('../../context/types.ts')
  const guarded = createGuardedPage({
    onOpen: () => void redirectPage?.remove().catch(() => {}),
    onReuse: () =>
      io.say(
        'A second browser used the address. If that was not you, somebody else saw it. The address no longer works: run this command again.',
      ),
  })
  let redirectPage: RedirectPage | undefined
  const page = await createPageHandler({ path: guarded.path, isPrivate: true }).catch(rethrowAsFailure)
  await feedSearches(source)
  const turns = createAssembleTurns()
  const memoryOf = createReadingCaches()
  const stop = installStopHandlers(log)
  try {
    const running = await serveHttp({
      ...pageIdentity(source, options),
      view: () => source.view,
      log,
      scrubber: io.secrets,
      profileOf: () => ({ tools: true }),
      readingTools: (view) => [
        createAssembleTool(view, {
          turns,
          memoryOf,
          ...(source.catalog === undefined ? { limits: remoteLimits } : {}),
        }),
      ],
      host: '127.0.0.1',
      port: options.port,
      path: guarded.path,
      pages: guarded.guard(page),
    }).catch(rethrowAsFailure)
    try {
      const address = `${running.url.slice(0, running.url.lastIndexOf('/'))}/#token=${guarded.token}`
      await io.out.write(`${address}\n`)
      redirectPage = options.open ? await handOver(address) : undefined
      announce(redirectPage !== undefined, io)
      const end = await Promise.race([stop.stopped, source.over])
      if (end !== undefined) throw commandFailure(end.message)
    } finally {
      await running.close()
    }
  } finally {
    await redirectPage?.remove().catch(() => {})
    stop.done()
  }
}

async function handOver(address: string): Promise<RedirectPage | undefined> {
  const opener = browserCommand(process.platform, process.env)
  if (opener === undefined) return undefined
  const redirectPage = await createRedirectPage(address).catch(() => undefined)
  if (redirectPage === undefined || (await openInBrowser(redirectPage.url, opener))) return redirectPage
  await redirectPage.remove()
  return undefined
}

function announce(isOpened: boolean, io: Io): void {
  io.say(
    isOpened
      ? 'The explorer opens in your browser. If it does not, open the address above: it works once. Ctrl-C ends it.'
      : 'Open the address above in a browser: it works once. Ctrl-C ends it.',
  )
}

function pageIdentity({ name, catalog }: CommandSource, { folders = [] }: UiOptions) {
  const [folder = '.'] = folders
  const title = name ?? (catalog !== undefined && folders.length < 2 ? basename(resolve(folder)) : '')
  return { name: 'hikidashi', version: packageVersion(), ...(title === '' ? {} : { title }) }
}

async function feedSearches({ catalog }: CommandSource): Promise<void> {
  if (catalog === undefined) return
  const { searchesOf } = await import('../../config/plan.ts')
  for (const { provider } of searchesOf(catalog)) provider.feed()
}

/** Returns a command without its last argument, the address; `undefined` if there is no display. */
export function browserCommand(
  platform: NodeJS.Platform,
  env: Readonly<Record<string, string | undefined>>,
): readonly [command: string, ...args: string[]] | undefined {
  if (platform === 'darwin') return ['open']
  if (platform === 'win32') return ['rundll32.exe', 'url.dll,FileProtocolHandler']
  // Without a display, xdg-open would start a browser in the terminal.
  const isShown = ['DISPLAY', 'WAYLAND_DISPLAY', 'BROWSER', 'WSL_DISTRO_NAME'].some((name) => (env[name] ?? '') !== '')
  return isShown ? ['xdg-open'] : undefined
}

/**
 * Other users of the machine can read the address while the browser starts, so it must contain no secret
 * (`createRedirectPage`). Resolves with whether a program was started.
 */
export function openInBrowser(url: string, opener = browserCommand(process.platform, process.env)): Promise<boolean> {
  if (opener === undefined) return Promise.resolve(false)
  const [command, ...args] = opener
  return new Promise((resolve) => {
    const child = spawn(command, [...args, url], { stdio: 'ignore', detached: true, shell: false })
    child.once('error', () => resolve(false))
    child.once('spawn', () => resolve(true))
    child.unref()
  })
}

/**
 * Creates a file that redirects a browser to a secret address. Other users of a machine can read the arguments of
 * processes, so the browser is started with this file, which only this user can read (mode 0600).
 * @throws the error of the system if the state folder cannot be written
 */
export async function createRedirectPage(
  address: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
) {
  const folder = join(stateFolder(env), 'ui')
  makeFolder(folder, 0o700)
  const file = join(folder, `open-${randomBytes(8).toString('hex')}.html`)
  await writeFile(file, pageFor(address), { flag: 'wx', mode: 0o600 })
  return {
    /** The `file:` URL of the file. It reveals nothing of the address. */
    url: pathToFileURL(file).href,
    remove: (): Promise<void> => rm(file, { force: true }),
  }
}

type RedirectPage = Awaited<ReturnType<typeof createRedirectPage>>

function pageFor(address: string): string {
  const escaped = address.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${escaped}">
<title>hikidashi</title>
<p><a href="${escaped}">Open the explorer of hikidashi</a></p>
</html>
`
}
