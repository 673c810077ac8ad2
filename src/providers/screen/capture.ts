import type { ChildProcess } from 'node:child_process'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ResourceError } from '../../core/errors.ts'
import { childLimits } from '../../core/kit/child-limits.ts'
import { spawnLimited } from '../limited-child.ts'
import type { CaptureCommand } from './command.ts'

export interface CaptureLimits {
  readonly timeoutMs: number
  /** The largest picture, in bytes. */
  readonly maxBytes: number
}

/** Signature of a PNG file (PNG specification, section 5.2). */
const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/**
 * Runs a command and answers the PNG that it made. A file that it needs lies in a folder that nobody else may open, and is
 * gone with the answer, whatever becomes of it. Nothing that the program says is passed on.
 *
 * @throws ResourceError `unavailable` where it fails, takes too long, or answers no PNG; `too-large` for a larger picture.
 */
export async function capture(command: CaptureCommand, limits: CaptureLimits, signal: AbortSignal): Promise<Buffer> {
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
    // By its name alone: some programs find a meaning in what a path may hold.
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
  // Four characters of base64 are three bytes.
  const most = from === 'base64' ? Math.ceil(maxBytes / 3) * 4 : maxBytes
  return new Promise((resolve, reject) => {
    const child = spawnLimited(program, args, childLimits.screen(timeoutMs, maxBytes), {
      env: { ...env },
      cwd,
      stdio: ['ignore', 'pipe', 'ignore'],
      windowsHide: true,
      // A process group of its own, so that it ends together with whatever it started.
      detached: process.platform !== 'win32',
    })
    const chunks: Buffer[] = []
    let length = 0
    let failure: unknown
    const end = (error: unknown) => {
      failure ??= error
      endGroup(child)
    }
    const abort = () => end(signal.reason)
    const killWithUs = () => endGroup(child)
    const timer = setTimeout(() => end(unavailable(`The display was not captured within ${timeoutMs} ms.`)), timeoutMs)
    signal.addEventListener('abort', abort, { once: true })
    process.once('exit', killWithUs)
    child.stdout?.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > most) end(tooLarge(maxBytes))
      else chunks.push(chunk)
    })
    child.once('error', (cause) => end(unavailable('The program that captures the display cannot be started.', cause)))
    child.once('close', (code) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      process.removeListener('exit', killWithUs)
      if (failure !== undefined) reject(failure)
      else if (code === 0) resolve(Buffer.concat(chunks))
      else reject(unavailable('The display cannot be captured: it is not there, or this user may not look at it.'))
    })
  })
}

function endGroup(child: ChildProcess): void {
  try {
    if (child.pid === undefined || process.platform === 'win32') child.kill('SIGKILL')
    else process.kill(-child.pid, 'SIGKILL')
  } catch {
    // It has ended just now.
  }
}

async function readAtMost(file: string, maxBytes: number): Promise<Buffer> {
  const handle = await open(file)
  try {
    if ((await handle.stat()).size > maxBytes) throw tooLarge(maxBytes)
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}

function pngOf(bytes: Buffer): Buffer {
  if (!bytes.subarray(0, signature.length).equals(signature))
    throw unavailable('The program that captures the display answered no PNG.')
  return bytes
}

function tooLarge(limit: number): ResourceError {
  return new ResourceError('too-large', `The picture of the display is larger than ${limit} bytes.`, {
    reason: 'too-large',
    limit,
  })
}

function unavailable(message: string, cause?: unknown): ResourceError {
  return new ResourceError('unavailable', message, {}, cause === undefined ? {} : { cause })
}
