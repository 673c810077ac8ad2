/** The contract of providers as a suite that any provider can be run against. */

export type { CheckOptions, Expectation, Framework, Report, Subject } from './check.ts'
export { checkProvider, describeProvider, formatProblem } from './check.ts'
export type { PromiseId } from './promises.ts'
export { promiseIds, promises } from './promises.ts'
export type { ExpectedEntry } from './reading.ts'
export type { Problem } from './run.ts'
