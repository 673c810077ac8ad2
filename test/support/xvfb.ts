import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Whether Xvfb, xsetroot, maim and scrot are installed. */
export const hasXvfb = ['Xvfb', 'xsetroot', 'maim', 'scrot'].every((name) =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, name))),
)
export const xvfbReason = 'there is no Xvfb; on Debian: apt-get install xvfb x11-xserver-utils maim scrot'

/** A virtual display for a test. */
export interface Xvfb {
  /** The value of `DISPLAY`. */
  readonly display: string
  readonly width: number
  readonly height: number
  /** Fills the screen with a colour, such as `#336699`. */
  paint(colour: string): Promise<void>
  /** Ends the server; the display is then gone. */
  close(): Promise<void>
}

/** Starts a display with a free number. */
export async function startXvfb(width = 320, height = 200): Promise<Xvfb> {
  const args = ['-displayfd', '1', '-screen', '0', `${width}x${height}x24`, '-nolisten', 'tcp', '-noreset']
  const child = spawn('Xvfb', args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const number = await new Promise<string>((resolve, reject) => {
    let said = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (said.includes('\n')) resolve(said.trim())
    })
    child.once('error', reject)
    void ended.then(() => reject(new Error('Xvfb has ended')))
  })
  const display = `:${number}`
  return {
    ...{ display, width, height },
    paint: async (colour) => void (await run('xsetroot', ['-display', display, '-solid', colour])),
    close: async () => {
      process.removeListener('exit', kill)
      child.kill('SIGTERM')
      await ended
    },
  }
}
