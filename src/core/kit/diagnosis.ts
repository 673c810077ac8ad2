/** The result of one check of an installation. */
export interface Diagnosis {
  readonly check: string
  readonly status: 'ok' | 'warning' | 'failed'
  readonly found: string
  /** The next command to run, or a change and where to make it. */
  readonly fix?: string
}

export type CheckResult = Omit<Diagnosis, 'check'>

export type ReportCheck = (check: string, found: CheckResult) => void

export const okResult = (sentence: string): CheckResult => ({ status: 'ok', found: sentence })
export const failedResult = (sentence: string, fix: string): CheckResult => ({ status: 'failed', found: sentence, fix })
export const warningResult = (sentence: string, fix: string): CheckResult => ({
  status: 'warning',
  found: sentence,
  fix,
})
