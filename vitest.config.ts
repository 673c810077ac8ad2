import { defineConfig } from 'vitest/config'

/** Tests that flood a server and watch what its other clients notice: nothing else runs beside them. */
const alone = ['backpressure', 'bombs', 'cancelling', 'framing', 'http-raw', 'http-slow', 'meta', 'tokens-flood'].map(
  (name) => `test/attack/${name}.test.ts`,
)

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    reporters: ['default', './test/support/summary.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: alone,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: alone, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
})
