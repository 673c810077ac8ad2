import type { ReportCheck } from '../../../core/kit/diagnosis.ts'

export interface CheckReporter {
  readonly tell: ReportCheck
  doing(what: string): void
}
