import { closeSync, existsSync, openSync, readSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Loads the native part of SQLite from `dist/vendor/`. The bundle replaces `node-gyp-build` by this module (scripts/vendored.ts).
 *
 * @throws Error on a platform without a build.
 */
export function loadPrebuilt(): unknown {
  const name = prebuiltFileName(process.platform, process.arch, usesMusl)
  const file = join(dirname(fileURLToPath(import.meta.url)), '../../vendor', name)
  if (!existsSync(file)) throw new Error(`There is no build of SQLite for ${process.platform} on ${process.arch}.`)
  return createRequire(import.meta.url)(file)
}

/** The file name of the build for a platform: `sqlite-linux-x64-musl.node`. */
export function prebuiltFileName(platform: string, arch: string, musl: () => boolean): string {
  return `sqlite-${platform}-${arch}${platform === 'linux' && musl() ? '-musl' : ''}.node`
}

function usesMusl(): boolean {
  const head = Buffer.alloc(4096)
  const descriptor = openSync(process.execPath, 'r')
  try {
    return head.toString('latin1', 0, readSync(descriptor, head, 0, head.length, 0)).includes('/ld-musl-')
  } finally {
    closeSync(descriptor)
  }
}
