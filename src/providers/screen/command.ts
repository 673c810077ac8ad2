import { invalid, type ResourceError } from '../../core/errors.ts'

export interface CaptureCommand {
  readonly program: string
  readonly args: readonly string[]
  /** The complete environment of the program. */
  readonly env: Readonly<Record<string, string>>
  /** Channel of the picture: standard output, standard output in base64, or a file whose name follows the arguments. */
  readonly from: 'stdout' | 'base64' | 'file'
}

export interface Machine {
  readonly platform: NodeJS.Platform
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Name of a display of X11: `:0` or `:0.1`. */
const xDisplay = /^(?:[\w.-]{0,255})?:\d{1,5}(?:\.\d{1,3})?$/
/** Number of a display of macOS or Windows, from 1. */
const number = /^[1-9]\d?$/

/** @throws ResourceError `invalid` if the machine has no display. */
export function defaultDisplays({ platform, env }: Machine): readonly string[] {
  if (platform === 'darwin' || platform === 'win32') return ['1']
  const { DISPLAY } = env
  if (DISPLAY === undefined || DISPLAY === '')
    throw displayFault('No display is known: the variable DISPLAY is not set.')
  return [DISPLAY]
}

/** @throws ResourceError `invalid` for a name that is not a display of this system. */
export function checkDisplay(display: string, { platform }: Machine): void {
  const isNumbered = platform === 'darwin' || platform === 'win32'
  if ((isNumbered ? number : xDisplay).test(display)) return
  throw displayFault(`${JSON.stringify(display)} is not the name of a display.`, isNumbered ? '1' : ':0')
}

function displayFault(what: string, example = ':0'): ResourceError {
  return invalid(`${what} Set the option "displays", such as [${JSON.stringify(example)}].`, 'configuration')
}

/** Returns the command that captures a display. `program` is the absolute path of one that {@link capturePrograms} names. */
export function captureCommand(program: string, display: string, machine: Machine): CaptureCommand {
  const { platform, env } = machine
  if (platform === 'darwin')
    // `-x` mutes the sound. The pointer is not captured by default.
    return { program, args: ['-x', '-t', 'png', '-D', display], env: { PATH: '/usr/bin:/bin' }, from: 'file' }
  if (platform === 'win32') {
    const { SystemRoot = 'C:\\Windows' } = env
    const encoded = Buffer.from(powershell(Number(display)), 'utf16le').toString('base64')
    const args = ['-NoLogo', '-NoProfile', '-NonInteractive', '-EncodedCommand', encoded]
    return { program, args, env: { SystemRoot, PATH: `${SystemRoot}\\System32` }, from: 'base64' }
  }
  const isMaim = /(?:^|\/)maim$/.test(program)
  return {
    program,
    args: isMaim ? ['--hidecursor', '--format=png'] : ['--silent', '--overwrite'],
    env: {
      ...{ PATH: '/usr/bin:/bin', LC_ALL: 'C', DISPLAY: display },
      // This file authorizes access to the display.
      ...(env.XAUTHORITY ? { XAUTHORITY: env.XAUTHORITY } : env.HOME ? { HOME: env.HOME } : {}),
    },
    // scrot opens its output by path, and a pipe of Node.js has no path.
    from: isMaim ? 'stdout' : 'file',
  }
}

/** Returns the script that captures a display. The number is validated, so no foreign text gets into the script. */
function powershell(display: number): string {
  return `$ErrorActionPreference = 'Stop'
Add-Type -AssemblyName System.Windows.Forms, System.Drawing
$screen = @([System.Windows.Forms.Screen]::AllScreens)[${display - 1}]
if ($null -eq $screen) { exit 3 }
$area = $screen.Bounds
$picture = New-Object System.Drawing.Bitmap $area.Width, $area.Height
$graphics = [System.Drawing.Graphics]::FromImage($picture)
$graphics.CopyFromScreen($area.Location, [System.Drawing.Point]::Empty, $area.Size)
$stream = New-Object System.IO.MemoryStream
$picture.Save($stream, [System.Drawing.Imaging.ImageFormat]::Png)
[Console]::Out.Write([Convert]::ToBase64String($stream.ToArray()))`
}
