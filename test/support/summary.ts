import type { Reporter, TestModule } from 'vitest/node'

/** Prints one closing line, `N passed, N failed, N skipped`, that any program can read. */
export default class Summary implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    for (const module of modules) {
      for (const test of module.children.allTests()) count[test.result().state]++
      // A file that could not be loaded holds no tests, and is a failure all the same.
      count.failed += module.state() === 'failed' && module.errors().length > 0 ? 1 : 0
    }
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped + count.pending} skipped\n`)
  }
}
