import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isPublished } from '../operations/version.ts'

/** A name that every host accepts: letters, digits, `-` and `_`. */
export function hostName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '') || 'hikidashi'
}

/** Returns the command that starts this package anywhere, and downloads it if it is missing. Windows finds `npx` only through `cmd`. */
export function npxCommand(args: readonly string[], platform: NodeJS.Platform = process.platform): readonly string[] {
  return [...(platform === 'win32' ? ['cmd', '/c'] : []), 'npx', '-y', 'hikidashi', ...args]
}

/** The command line that starts this installation from any folder. */
export function ownCommand(
  args: readonly string[],
  main = fileURLToPath(new URL('../main.js', import.meta.url)),
  platform: NodeJS.Platform = process.platform,
  published: () => boolean = isPublished,
): readonly string[] {
  // The cache of npx may be removed at any time, so use npx itself.
  if (/[\\/]_npx[\\/]/.test(main) && published()) return npxCommand(args, platform)
  return [process.execPath, resolve(main), ...args]
}
