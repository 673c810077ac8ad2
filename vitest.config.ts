import { defineConfig } from 'vitest/config'
import { sharedFolderOf, sharedVariable, stateFolderOf, temporaryFolderOf } from './test/support/run-folders.ts'

export default defineConfig({
  test: {
    // This tells a test that hangs from one that is slow, beside three others on a machine with two cores.
    testTimeout: 60_000,
    // Polling ends when what is waited for has happened; a busy machine takes longer than the second that is vitest's default.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 60_000,
    // Continuous integration tries a failed test once more, and the summary lists it with its first error. A random property that failed
    // would be tried with other values, so it is not.
    retry: { count: (process.env.HIKIDASHI_REQUIRE ?? '') === '' ? 0 : 1, condition: /^(?!Property failed)/ },
    // Files share the process of their worker, so that each loads `src/` once. Each file leaves its process as it was.
    pool: 'forks',
    isolate: false,
    // Most tests wait for processes and servers.
    maxWorkers: 4,
    globalSetup: './test/support/global-setup.ts',
    setupFiles: './test/support/file-setup.ts',
    // Folders that are served without a configuration keep their index in the state folder of the user: here, of this run.
    env: {
      [sharedVariable]: sharedFolderOf(process.pid),
      TMPDIR: temporaryFolderOf(process.pid),
      XDG_STATE_HOME: stateFolderOf(process.pid),
    },
    reporters: ['default', './test/support/summary.ts'],
    experimental: { fsModuleCache: true },
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/unit/**/*.test.ts'] } },
      { extends: true, test: { name: 'e2e', include: ['test/**/*.test.ts'], exclude: ['test/unit/**'] } },
    ],
  },
})
