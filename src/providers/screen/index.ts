import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { invalid, notFound, tooLarge, unavailable } from '../../core/errors.ts'
import { childLimits } from '../../core/kit/workers.ts'
import type { Context, Entry, Provider, Template } from '../../core/provider.ts'
import { findProgram, isProgram, runProgram } from '../program.ts'
import { type CaptureCommand, captureCommand, checkDisplay, defaultDisplays, type Machine } from './command.ts'
import { capturePrograms } from './programs.ts'

export interface ScreenOptions {
  /** The displays, by their names in the system: `:0` (X11), `1` (macOS, Windows). Default that of `DISPLAY`, or the first. */
  readonly displays?: readonly string[]
  /** Absolute path of the capture program: on X11, of `maim` or `scrot`. Default `screencapture` on macOS, else the first one on the PATH. */
  readonly program?: string
  /** Pause between two captures, in milliseconds. Default 1,000. */
  readonly intervalMs?: number
  /** Time-out of one capture, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number
  /** Maximum size of a picture, in bytes. Default 16 MiB. */
  readonly maxBytes?: number
}

const template: Template = {
  template: '{display}',
  name: 'Display',
  title: 'The current picture of a display',
  description: 'A picture of one display: display1, display2, … as they are listed.',
  mimeType: 'image/png',
}

/** Maximum number of waiting captures. Further callers get an error that asks them to retry. */
const maxWaiting = 8

/**
 * Provider of the displays of this machine: each as a PNG picture of the moment of the read. One capture runs at a time, with a pause in
 * between, and no picture is kept.
 *
 * @throws ResourceError `invalid` without a display, or without a program that captures one.
 */
export function screen(options: ScreenOptions = {}): Promise<Provider> {
  return createScreen(options, { platform: process.platform, env: process.env })
}

/** {@link screen} with the machine as a parameter, for tests. */
export async function createScreen(options: ScreenOptions, machine: Machine): Promise<Provider> {
  const { intervalMs = 1000, timeoutMs = 10_000, maxBytes = 16 * 1024 * 1024 } = options
  const displays = options.displays ?? defaultDisplays(machine)
  for (const display of displays) checkDisplay(display, machine)
  const program = await programFor(options.program, machine)
  const entries = displays.map((_, index): Entry => {
    const path = `display${index + 1}`
    return { path, title: `Display ${index + 1}`, mimeType: 'image/png', audience: ['user'] }
  })
  entries.sort((a, b) => (a.path < b.path ? -1 : 1))
  const closing = new AbortController()
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  let endTime = Number.NEGATIVE_INFINITY

  const inTurn = async <T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> => {
    if (waiting >= maxWaiting)
      throw unavailable('Too many requests wait for a picture of a display. Try again later.', { retryAfter: 1 })
    waiting++
    const turn = last.then(async () => {
      const pauseMs = endTime + intervalMs - performance.now()
      if (pauseMs > 0) await sleep(pauseMs, undefined, { signal })
      signal.throwIfAborted()
      try {
        return await work()
      } finally {
        endTime = performance.now()
      }
    })
    last = turn.catch(() => {})
    void last.then(() => {
      waiting--
    })
    // An aborted caller does not wait for its turn.
    return new Promise((resolve, reject) => {
      const abort = () => reject(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      turn.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
    })
  }

  const find = (path: string, { signal }: Context): Entry => {
    signal.throwIfAborted()
    const entryAtPath = entries.find((entry) => entry.path === path)
    if (entryAtPath === undefined) throw notFound('no such display')
    return entryAtPath
  }

  return {
    list: async function* ({ prefix = '', after = '' }, { signal }) {
      signal.throwIfAborted()
      for (const entry of entries) if (prefix === '' && entry.path > after) yield entry
    },
    stat: async (path, context) => find(path, context),
    read: async ({ path }, context) => {
      find(path, context)
      const display = displays[Number(path.slice('display'.length)) - 1] ?? ''
      const signal = AbortSignal.any([context.signal, closing.signal])
      const command = captureCommand(program, display, machine)
      const bytes = await inTurn(() => capture(command, { timeoutMs, maxBytes }, signal), signal)
      return [{ mimeType: 'image/png', bytes, size: bytes.length }]
    },
    templates: async () => [template],
    close: async () => {
      closing.abort(unavailable('The screen provider is closed.'))
      await last
    },
  }
}

async function programFor(programName: string | undefined, { platform }: Machine): Promise<string> {
  const names = capturePrograms(platform)
  if (programName !== undefined) {
    const isKnown = names.some((name) => basename(name) === basename(programName))
    if (isAbsolute(programName) && isKnown && (await isProgram(programName))) return programName
    throw invalid(
      `The option "program" must be the absolute path of ${names.map((name) => basename(name)).join(' or ')}.`,
      'configuration',
    )
  }
  for (const name of names) {
    const program = isAbsolute(name) ? name : await findProgram(name)
    if (program !== undefined && (await isProgram(program))) return program
  }
  const advice = platform === 'linux' ? ' On Debian: apt-get install maim.' : ''
  throw invalid(`There is no program that captures a display: ${names.join(' or ')}.${advice}`, 'configuration')
}

interface CaptureLimits {
  readonly timeoutMs: number
  readonly maxBytes: number
}

/** Signature of a PNG file (PNG specification, section 5.2). */
const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/**
 * Runs a command, and returns the PNG that it made. A file that it writes is in a folder that only this user may open, and is deleted
 * afterwards.
 *
 * @throws ResourceError `unavailable` if it fails, takes too long, or makes no PNG; `too-large` for a larger picture.
 */
async function capture(command: CaptureCommand, limits: CaptureLimits, signal: AbortSignal): Promise<Buffer> {
  signal.throwIfAborted()
  if (command.from !== 'file') {
    const output = await run(command, command.args, '/', limits, signal)
    return pngOf(command.from === 'base64' ? Buffer.from(output.toString('latin1'), 'base64') : output)
  }
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-screen-'))
  try {
    const name = 'display.png'
    const file = join(folder, name)
    const handle = await open(file, 'wx', 0o600)
    await handle.close()
    // Pass the name without its path, because some programs interpret characters in a path.
    await run(command, [...command.args, name], folder, limits, signal)
    return pngOf(await readAtMost(file, limits.maxBytes))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function run(
  { program, env, from }: CaptureCommand,
  args: readonly string[],
  cwd: string,
  { timeoutMs, maxBytes }: CaptureLimits,
  signal: AbortSignal,
): Promise<Buffer> {
  return runProgram(program, args, childLimits.screen(timeoutMs, maxBytes), {
    env,
    cwd,
    timeoutMs,
    // Four characters of base64 are three bytes.
    maxBytes: from === 'base64' ? Math.ceil(maxBytes / 3) * 4 : maxBytes,
    signal,
    errors: {
      late: () => unavailable(`The display was not captured within ${timeoutMs} ms.`),
      tooMuch: () => tooLargePicture(maxBytes),
      notStarted: (cause) => unavailable('The program that captures the display cannot be started.', {}, cause),
      failed: () => unavailable('The display cannot be captured: it does not exist, or this user may not capture it.'),
    },
  })
}

async function readAtMost(file: string, maxBytes: number): Promise<Buffer> {
  const handle = await open(file)
  try {
    if ((await handle.stat()).size > maxBytes) throw tooLargePicture(maxBytes)
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}

function pngOf(bytes: Buffer): Buffer {
  if (!bytes.subarray(0, signature.length).equals(signature))
    throw unavailable('The program that captures the display did not write a PNG.')
  return bytes
}

const tooLargePicture = (limit: number) =>
  tooLarge(`The picture of the display is larger than ${limit} bytes.`, { limit })
