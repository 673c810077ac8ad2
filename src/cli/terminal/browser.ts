import { spawn } from 'node:child_process'

/** How a system is told to open an address, without a shell. `undefined`: there is nobody to look at it. */
export function openerFor(
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
 * Opens an address in the browser of the user. Every user of the machine can read the address while the browser starts: it must hold no
 * secret (`createHandover`). Resolves with whether something took it; what becomes of that is not waited for.
 */
export function openInBrowser(url: string, opener = openerFor(process.platform, process.env)): Promise<boolean> {
  if (opener === undefined) return Promise.resolve(false)
  const [command, ...args] = opener
  return new Promise((resolve) => {
    const child = spawn(command, [...args, url], { stdio: 'ignore', detached: true, shell: false })
    child.once('error', () => resolve(false))
    child.once('spawn', () => resolve(true))
    child.unref()
  })
}
