import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { notApplicable, notApplicableSections } from '../not-applicable.ts'
import rows from '../rows.json' with { type: 'json' }
import { rowsIn, sections } from './rows.ts'

const folder = join(import.meta.dirname, '..')

/** Prints the results of the attack corpus by section, and why some rows do not apply, for `npm run attack`. */
export default class AttackTable implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const attacks = modules.filter(({ moduleId }) => moduleId.startsWith(folder))
    const tests = attacks.flatMap((module) => [...module.children.allTests()])
    const table = Object.entries(rows).map(([section, ids]) => lineOf(section, ids, tests))
    process.stdout.write(`\n${print([...table, totalOf(table, tests)])}\n\n${reasons()}\n`)
    const files = readdirSync(folder).filter((file) => file.endsWith('.test.ts'))
    if (attacks.length < files.length) return
    const missing = table.flatMap((line) => line.missing)
    if (missing.length === 0) return
    process.stdout.write(`\nNo test that ran names these rows, and no reason is given: ${missing.join(' ')}\n`)
    process.exitCode = 1
  }
}

interface Line {
  readonly name: string
  readonly rows: number
  /** Number of rows whose tests passed. */
  readonly held: number
  readonly notApplicable: number
  readonly tests: number
  readonly inputs: number
  readonly failed: number
  readonly skipped: number
  readonly missing: readonly string[]
}

function lineOf(section: string, ids: readonly string[], tests: readonly TestCase[]): Line {
  const own = tests.filter((test) => rowsIn(test.fullName).some((id) => id.startsWith(section)))
  const named = new Set(own.flatMap((test) => rowsIn(test.fullName)))
  const passed = new Set(own.filter(isPassed).flatMap((test) => rowsIn(test.fullName)))
  const failing = new Set(own.filter(isFailed).flatMap((test) => rowsIn(test.fullName)))
  const excused = ids.filter((id) => !named.has(id) && (id in notApplicable || section in notApplicableSections))
  return {
    name: `${section}  ${sections[section]}`,
    rows: ids.length,
    held: ids.filter((id) => passed.has(id) && !failing.has(id)).length,
    notApplicable: excused.length,
    ...countsOf(own),
    missing: ids.filter((id) => !named.has(id) && !excused.includes(id)),
  }
}

function totalOf(table: readonly Line[], tests: readonly TestCase[]): Line {
  const sum = (of: (line: Line) => number) => table.reduce((all, line) => all + of(line), 0)
  return {
    name: 'all, with those of no row',
    rows: sum((line) => line.rows),
    held: sum((line) => line.held),
    notApplicable: sum((line) => line.notApplicable),
    ...countsOf(tests),
    missing: [],
  }
}

const isPassed = (test: TestCase) => test.result().state === 'passed'
const isFailed = (test: TestCase) => test.result().state === 'failed'

function countsOf(tests: readonly TestCase[]): Pick<Line, 'tests' | 'inputs' | 'failed' | 'skipped'> {
  const failed = tests.filter(isFailed).length
  return {
    tests: tests.length,
    // A test without a server counts as one input.
    inputs: tests.reduce((all, test) => all + Math.max(1, test.meta().inputs ?? 1), 0),
    failed,
    skipped: tests.length - failed - tests.filter(isPassed).length,
  }
}

function print(lines: readonly Line[]): string {
  const titles = ['the attack corpus', 'rows', 'held', 'not applicable', 'tests', 'inputs', 'failed', 'skipped']
  const cells = lines.map((line) => [
    line.name,
    ...[line.rows, line.held, line.notApplicable, line.tests, line.inputs, line.failed, line.skipped].map(String),
  ])
  const widths = titles.map((title, i) => Math.max(title.length, ...cells.map((row) => row[i]?.length ?? 0)))
  const lay = (row: readonly string[]) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join('  ')
      .trimEnd()
  return [titles, ...cells].map(lay).join('\n')
}

function reasons(): string {
  const each = Object.entries({ ...notApplicableSections, ...notApplicable }).sort(([a], [b]) => (a < b ? -1 : 1))
  return ['Not applicable:', ...each.map(([id, reason]) => `  ${id.padEnd(4)}  ${reason}`)].join('\n')
}
