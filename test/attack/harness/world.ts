import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileAddress } from '../../../src/core/uri.ts'
import { type CanaryWatch, createCanaryWatch } from './canary.ts'

/** A folder to attack: a root with ordinary and forbidden files, and secrets beside it. */
export interface World {
  readonly root: string
  /** The URI of the root. */
  readonly address: string
  /** Files of the root that every caller may read, by path. */
  readonly files: ReadonlyMap<string, string>
  readonly canaries: CanaryWatch
  /** The environment of a server, which contains secrets. */
  readonly environment: Readonly<Record<string, string>>
  dispose(): void
}

/** The file that is read repeatedly, to check that the server still answers. */
export const controlPath = 'control.txt'
const controlText = 'still here\n'.repeat(94).slice(0, 1024)

export const fifoCount = 64

/** Number of files in `many/` with which a list of all resources has several pages. Creating them takes a second. */
export const manyFiles = 1200

/** @param filesInMany Number of files in `many/`. */
export function createWorld(filesInMany = 20): World {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-attack-')))
  const root = join(dir, 'root')
  const canaries = createCanaryWatch()
  const put = (path: string, text: string | Uint8Array) => {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
  }

  const files = new Map<string, string>([
    [controlPath, controlText],
    ['A', 'capital a\n'],
    ['a', 'small a\n'],
    ['a.txt', 'alpha\n'],
    ['a..b', 'dots within\n'],
    ['a...', 'dots behind\n'],
    ['abc', 'abc\n'],
    ['dir/f', 'f\n'],
    ['dir/sub/deep.txt', 'deep\n'],
    ['empty', ''],
    ['ü.txt', 'umlaut\n'],
    ['u\u0308.txt', 'umlaut, decomposed\n'],
    ['日本語/引き出し.md', 'drawer\n'],
    ['[id].tsx', 'brackets\n'],
    ['has space.txt', 'space\n'],
    ['percent%41.txt', 'a percent sign\n'],
    ['back\\slash', 'backslash\n'],
    ['C:\\x', 'looks like a drive\n'],
    ['-rf', 'minus\n'],
    ['\u202eevil.txt', 'right to left\n'],
    ['emoji-🗄️', 'emoji\n'],
    ['\ufffd', 'replacement character\n'],
    ['__proto__', 'proto\n'],
    ['constructor', 'constructor\n'],
    ['x'.repeat(255), 'long name\n'],
    ['q?x=1', 'question mark\n'],
    ['hash#f', 'hash\n'],
    ['env', 'not .env\n'],
  ])
  for (const [path, text] of files) put(join('root', path), text)
  for (let i = 0; i < filesInMany; i++) put(join('root/many', `f${String(i).padStart(4, '0')}`), `${i}\n`)
  put('root/big.txt', 'The quick brown fox jumps over the lazy dog 012345.\n'.repeat(80_000))
  put('root/blob.bin', Buffer.alloc(512 * 1024, 0xa5))

  for (const path of [
    'secret',
    'secret.txt',
    'outside/f',
    'outside/secret',
    'root-evil/f',
    'root/.env',
    'root/.env.local',
    'root/.env~',
    'root/dir/.env',
    'root/.git/config',
    'root/.ssh/id_rsa',
    'root/id_rsa',
    'root/server.pem',
    'root/server.key',
    'root/node_modules/m/index.js',
    'root/a.txt~',
    'root/.#a.txt',
    'root/.a.txt.swp',
    // Names with control characters, which no URI can have.
    'root/new\nline',
    'root/esc\u001b[31m',
    'root/tab\there',
  ])
    put(path, `${canaries.plant(path.replace(/[^\w.]/g, '_'))}\n`)

  const links: readonly (readonly [string, string])[] = [
    ['link-absolute', join(dir, 'secret')],
    ['link-relative', '../secret'],
    ['link-directory', '../outside'],
    ['link-loop', 'link-loop'],
    ['link-environ', '/proc/self/environ'],
    ['link-stdin', '/dev/fd/0'],
    ['link-root', '/proc/self/root'],
    ['link-denied', '.env'],
    ['link-up', '..'],
    ['dir/link-chain', '../link-relative'],
  ]
  for (const [path, to] of links) symlinkSync(to, join(root, path))
  execFileSync(
    'mkfifo',
    [...Array(fifoCount).keys()].map((i) => join(root, `fifo${i}`)),
  )

  return {
    root,
    address: fileAddress(root),
    files,
    canaries,
    environment: {
      PATH: process.env.PATH ?? '',
      HOME: dir,
      // Temporary files of a killed server are removed with the run.
      TMPDIR: tmpdir(),
      LANG: 'C.UTF-8',
      API_TOKEN: canaries.plant('environment'),
      AWS_SECRET_ACCESS_KEY: canaries.plant('aws'),
      DATABASE_URL: `postgres://user:${canaries.plant('database')}@127.0.0.1:1/db`,
    },
    dispose: () => rmSync(dir, { recursive: true, force: true }),
  }
}
