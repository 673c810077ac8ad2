import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig, type Plugin } from 'vitest/config'
import {
  bundlesFolder,
  bundleVariable,
  home,
  sharedFolderOf,
  sharedVariable,
  stateFolderOf,
  temporaryFolderOf,
} from './test/support/bundle-folder.ts'
import { Mixed } from './test/support/order.ts'

/** Tests that fill the memory and the processors, and watch what other clients notice: nothing else runs beside them. */
const alone = ['backpressure', 'bombs', 'http-slow'].map((name) => `test/attack/${name}.test.ts`)

/** Unit tests that wait for databases, processes or the file system, each for seconds: `npm run test:quick` leaves them out. */
const waiting = [
  ...['client', 'client-changes', 'client-command', 'client-live', 'encoding', 'files-listing', 'files-reading'],
  ...[
    'files-watch',
    'gdrive',
    'gdrive-credentials',
    'git',
    'git-open',
    'git-slices',
    'git-watch',
    'mysql',
    'objects',
    'postgres',
  ],
  ...['postgres-faults', 'remote', 'sqlite', 'store-postgres', 'store-sqlite', 'testing', 'token-file'],
].map((name) => `test/unit/${name}.test.ts`)

/** What a unit test mentions that changes its process, looks at it, or starts another one. */
const marks =
  /child_process|worker_threads|process\.(?!hrtime|execPath)|globalThis|\bvi\b|defineProperty\(process|memoryUsage|startStopwatch|start(?:Postgres|Database|Mariadb)|sqlite/

/** Unit tests that leave their process as it was. They share one, which saves half a second for each file. A large process starts others slowly. */
const sharing = readdirSync(join(home, 'test/unit'))
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => `test/unit/${name}`)
  .filter((path) => !waiting.includes(path))
  .filter((path) => !marks.test(readFileSync(join(home, path), 'utf8')))

/**
 * What any other file mentions that changes its process for good, or looks at it. The environment and the current folder are
 * compared after each file.
 */
const marksOfOthers =
  /worker_threads|process\.(?:umask|on|once|memoryUsage|cpuUsage|std)|\bvi\.(?:mock|doMock|useFake)|defineProperty\(process|memoryUsage|startStopwatch/

/** What a test of a page says of the page's own. */
const ofPages = /support\/browser\.ts/

/** Files that start servers and command lines, and leave their own process as it was. They share one as well. */
const served = ['attack', 'contract', 'e2e', 'unit', 'wire']
  .flatMap((folder) => readdirSync(join(home, 'test', folder)).map((name) => `test/${folder}/${name}`))
  .filter((path) => path.endsWith('.test.ts') && ![...alone, ...sharing, ...waiting].includes(path))
  .filter((path) => {
    const text = readFileSync(join(home, path), 'utf8')
    return !marksOfOthers.test(text) && (ofPages.test(text) || !text.includes('globalThis'))
  })

/** Where `test/support/bundle-setup.ts` bundles `src/` and the programs of tests to. */
const bundle = join(bundlesFolder, String(process.pid), 'dist')

/** The modules that start threads and child processes from files beside them. */
const starters = [
  'providers/files/watch-thread',
  'providers/gdrive/read',
  'providers/settings/desk',
  'providers/sqlite/index',
  'store/sqlite',
  'wrap/readable',
  'secrets/redactor',
].map((name) => ({ source: join(home, `src/${name}.ts`), name: `${name}.js` }))

/**
 * Lets the code under test start its threads and processes from the bundle: from their source each would load a compiler first.
 * The bundle of a run is named by the environment, so that what is compiled holds for other runs.
 */
const threadsFromBundle: Plugin = {
  name: 'threads-from-bundle',
  enforce: 'pre',
  transform(code, id) {
    const starter = starters.find(({ source }) => source === id)
    if (starter === undefined) return null
    const path = `process.getBuiltinModule('node:path').join(process.env.${bundleVariable}, ${JSON.stringify(starter.name)})`
    return code
      .replaceAll('import.meta.url', `process.getBuiltinModule('node:url').pathToFileURL(${path}).href`)
      .replaceAll('import.meta.filename', path)
      .replaceAll('import.meta.dirname', `process.getBuiltinModule('node:path').dirname(${path})`)
  },
}

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
    // Most tests wait for processes and servers: twice as many files as a small machine has cores keep it busy.
    maxWorkers: 4,
    sequence: { sequencer: Mixed },
    projects: [
      { extends: true, test: { name: 'sharing', include: sharing, isolate: false } },
      { extends: true, test: { name: 'served', include: served, isolate: false } },
      {
        extends: true,
        test: {
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: [...sharing, ...served, ...waiting, ...alone],
        },
      },
      { extends: true, test: { name: 'waiting', include: waiting } },
      {
        extends: true,
        test: { name: 'alone', include: alone, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
})
