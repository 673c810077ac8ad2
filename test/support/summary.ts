import { relative } from 'node:path'
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { commandOf, type Failed } from './again.ts'
import { home } from './run-folders.ts'

/** Maximum number of listed failures; more are only counted. */
const maxListed = 20

/** The environment variable with the number of listed files that took the most CPU time. By default none. */
const dearestVariable = 'HIKIDASHI_DEAREST'

/** Prints the tests that passed only when tried again, the command that repeats each failed test, and a last line for programs: `N passed, N failed, N skipped`. */
export default class Summary implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    const failed: Failed[] = []
    const again: Failed[] = []
    for (const module of modules) {
      const file = relative(home, module.moduleId)
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result()
        count[state]++
        const one = { file, titles: titlesOf(test), messages: errors?.map(({ message }) => message) ?? [] }
        if (state === 'failed') failed.push(one)
        else if (test.diagnostic()?.flaky === true) again.push(one)
      }
      // A file that could not be loaded has no tests, and counts as a failure.
      if (module.state() === 'failed' && module.errors().length > 0) {
        count.failed++
        failed.push({ file, titles: [], messages: [] })
      }
    }
    for (const { file, titles, messages } of again)
      process.stdout.write(
        `\nPassed only when tried again: ${file} > ${titles.join(' > ')}\n  ${messages.join('\n  ')}\n`,
      )
    const lines = failed.slice(0, maxListed).map((one) => `  ${commandOf(one)}\n`)
    if (failed.length > maxListed) lines.push(`  … and ${failed.length - maxListed} more\n`)
    if (failed.length > 0) process.stdout.write(`\nTo run what failed again (after npm run build):\n${lines.join('')}`)
    const dearest = Number(process.env[dearestVariable] ?? 0)
    if (dearest > 0) process.stdout.write(dearestOf(modules, dearest))
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped + count.pending} skipped\n`)
  }
}

/** Returns the files that took the most CPU time, including their child processes. */
function dearestOf(modules: readonly TestModule[], count: number): string {
  const taken = modules
    .map((module) => {
      const { own, children } = module.meta().processor ?? { own: 0, children: 0 }
      return { file: relative(home, module.moduleId), own, children, both: own + children }
    })
    .sort((a, b) => b.both - a.both)
  const all = taken.reduce((sum, { both }) => sum + both, 0)
  const seconds = (value: number) => value.toFixed(1).padStart(6)
  const lines = taken
    .slice(0, count)
    .map(({ file, own, children, both }) => `${seconds(both)} =${seconds(own)} +${seconds(children)}  ${file}\n`)
  return `\nProcessor seconds of ${modules.length} files: ${all.toFixed(0)}; most of it:\n${lines.join('')}`
}

function titlesOf(test: TestCase): readonly string[] {
  const titles = [test.name]
  for (let at = test.parent; at.type === 'suite'; at = at.parent) titles.unshift(at.name)
  return titles
}
