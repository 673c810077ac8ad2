/** The contract of providers as a suite that any provider can be run against. */

export type { CheckOptions, Expectation, Framework, Report, Subject } from './check.ts'
export { checkProvider, describeProvider, formatProblem } from './check.ts'
export type { ExpectedEntry } from './reading.ts'
export type { Problem, PromiseId } from './run.ts'
export { promiseIds, promises } from './run.ts'
