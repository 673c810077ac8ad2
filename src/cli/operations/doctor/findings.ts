import type { ReportCheck } from '../../../core/kit/diagnosis.ts'

/** Receives the results and the progress of the checks. */
export interface CheckReporter {
  readonly tell: ReportCheck
  /** Shows the current step to a waiting person. */
  doing(what: string): void
}
