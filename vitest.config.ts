import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import {
  bundlesFolder,
  bundleVariable,
  home,
  sharedFolderOf,
  sharedVariable,
  stateFolderOf,
  temporaryFolderOf,
} from './test/support/bundle-folder.ts'
import { compiledSource, threadsFromBundle } from './test/support/compiled-source.ts'
import { Mixed } from './test/support/order.ts'
import { mostAtOnce } from './test/support/turns.ts'

/** Tests that fill the memory and the processors, or wait for who is slow, and watch what other clients notice: nothing else runs beside them. */
const alone = ['backpressure', 'bombs', 'http-slow', 'unread'].map((name) => `test/attack/${name}.test.ts`)

/** Unit tests that wait for databases, processes or the file system, each for seconds: `npm run test:quick` leaves them out. */
const waiting = [
  ...['client', 'client-changes', 'client-command', 'client-live', 'content-links', 'encoding', 'files-listing'],
  ...[
    'files-reading',
    'files-watch-confirm',
    'files-watch',
    'gdrive',
    'gdrive-credentials',
    'git',
    'git-open',
    'git-parts',
    'git-slices',
    'git-watch',
    'mysql',
    'objects',
    'postgres',
  ],
  ...['postgres-faults', 'remote', 'search-index', 'sqlite', 'store-postgres', 'store-sqlite', 'testing', 'token-file'],
].map((name) => `test/unit/${name}.test.ts`)

/** `npm run test:quick`. */
const isQuick = process.env.HIKIDASHI_QUICK !== undefined

/** What it leaves out. Another version of Node (`npm run test:node`) may open databases in another way, so it tries that as well. */
const leftOut = !isQuick
  ? []
  : waiting.filter((path) => process.env.HIKIDASHI_QUICK !== 'node' || path !== 'test/unit/sqlite.test.ts')

/** What a unit test mentions that changes its process, looks at it, or starts another one. */
const marks =
  /child_process|worker_threads|process\.(?!hrtime|execPath)|globalThis|\bvi\b|defineProperty\(process|memoryUsage|startStopwatch|start(?:Postgres|Database|Mariadb)|sqlite/

/** All files, with their texts. */
const files = ['test', ...['attack', 'contract', 'e2e', 'guarantees', 'unit', 'wire'].map((name) => `test/${name}`)]
  .flatMap((folder) => readdirSync(join(home, folder)).map((name) => `${folder}/${name}`))
  .filter((path) => path.endsWith('.test.ts'))
  .map((path) => ({ path, text: readFileSync(join(home, path), 'utf8') }))

/** Unit tests that leave their process as it was. They share one, which saves half a second for each file. A large process starts others slowly. */
const sharing = files
  .filter(({ path, text }) => path.startsWith('test/unit/') && !waiting.includes(path) && !marks.test(text))
  .map(({ path }) => path)

/**
 * What any other file mentions that changes its process for good, or looks at it. The environment, the current folder and the clock are
 * compared after each file.
 */
const marksOfOthers =
  /worker_threads|process\.(?:umask|on|once|memoryUsage|cpuUsage)|\bvi\.(?:mock|doMock)|defineProperty\(process|memoryUsage/

/** Those that put back what they change, or mention it only in a program that they start. */
const tidy = ['files-reading', 'host-files-exact', 'redactor', 'settings-desk', 'sqlite'].map(
  (name) => `test/unit/${name}.test.ts`,
)

/** Those that leave their process large, and others in it slow, or that may not be held up by what others left. */
const apart = ['test/architecture.test.ts', 'test/toolkit.test.ts', 'test/unit/encoding.test.ts']

/** What a test of a page says of the page's own. */
const ofPages = /support\/browser\.ts/

/** Files that start servers and command lines, and leave their own process as it was. They share one as well. */
const served = files
  .filter(({ path }) => ![...alone, ...apart, ...sharing, ...leftOut].includes(path))
  .filter(
    ({ path, text }) =>
      tidy.includes(path) || (!marksOfOthers.test(text) && (ofPages.test(text) || !text.includes('globalThis'))),
  )
  .map(({ path }) => path)

/** Files that replace modules: vitest compiles each module of `src/` for them. */
const replacing = files.filter(({ text }) => /\bvi\.(?:mock|doMock)\(/.test(text)).map(({ path }) => path)

/** Where `test/support/bundle-setup.ts` bundles `src/` and the programs of tests to. */
const bundle = join(bundlesFolder, String(process.pid), 'dist')

/** A run that watches files compiles what has changed, module by module. */
const plugins = process.argv.includes('run') ? [compiledSource] : []

export default defineConfig({
  plugins: [threadsFromBundle],
  test: {
    // This tells a test that hangs from one that is slow, beside three others on a machine with two cores.
    testTimeout: 60_000,
    // Polling ends when what is waited for has happened; a busy machine takes longer than the second that is vitest's default.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 60_000,
    pool: 'forks',
    globalSetup: './test/support/bundle-setup.ts',
    setupFiles: './test/support/each-file.ts',
    // Folders that are served without a configuration keep their index in the state folder of the user: here, of this run.
    env: {
      [bundleVariable]: bundle,
      [sharedVariable]: sharedFolderOf(process.pid),
      TMPDIR: temporaryFolderOf(process.pid),
      XDG_STATE_HOME: stateFolderOf(process.pid),
    },
    reporters: ['default', './test/support/summary.ts'],
    // Compiled modules are kept for the other projects below, and for other runs.
    experimental: { fsModuleCache: true },
    // Most tests wait for processes and servers. Beyond the fourth, a file begins while processors have nothing to do.
    maxWorkers: mostAtOnce,
    sequence: { sequencer: Mixed },
    projects: [
      { extends: true, plugins, test: { name: 'sharing', include: sharing, isolate: false } },
      { extends: true, plugins, test: { name: 'served', include: served, isolate: false } },
      {
        extends: true,
        plugins,
        test: {
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: [...sharing, ...served, ...waiting, ...alone, ...replacing],
        },
      },
      {
        extends: true,
        plugins,
        test: { name: 'waiting', include: isQuick ? [] : waiting.filter((path) => !served.includes(path)) },
      },
      { extends: true, test: { name: 'replacing', include: replacing } },
      {
        extends: true,
        plugins,
        test: { name: 'alone', include: alone, maxWorkers: alone.length, sequence: { groupOrder: 1 } },
      },
    ],
  },
})
