import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isPublished } from './version.ts'

/** A name that every host takes: letters, digits, `-` and `_`. */
export function hostName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '') || 'hikidashi'
}

/** What starts this package from anywhere, downloading it where it is missing. Windows finds `npx` only through `cmd`. */
export function npxCommand(args: readonly string[], platform: NodeJS.Platform = process.platform): readonly string[] {
  return [...(platform === 'win32' ? ['cmd', '/c'] : []), 'npx', '-y', 'hikidashi', ...args]
}

/** The command line that starts this very program, from wherever a host is. */
export function ownCommand(
  args: readonly string[],
  main = fileURLToPath(new URL('./main.js', import.meta.url)),
  platform: NodeJS.Platform = process.platform,
  published: () => boolean = isPublished,
): readonly string[] {
  // What npx unpacked may be gone tomorrow; npx itself is not.
  if (/[\\/]_npx[\\/]/.test(main) && published()) return npxCommand(args, platform)
  return [process.execPath, resolve(main), ...args]
}
