/** The contract of providers as a suite that any provider can be run against. */

export type { CheckOptions, Expectation, Report } from './check.ts'
export { checkProvider, formatProblem } from './check.ts'
export type { Framework, Subject } from './describe.ts'
export { describeProvider } from './describe.ts'
export type { PromiseId } from './promises.ts'
export { promiseIds, promises } from './promises.ts'
export type { ExpectedEntry } from './reading.ts'
export type { Problem } from './run.ts'
