/** The result of one check of an installation. A failure or warning has a fix: the next command to run, or a change and where to make it. */
export interface Diagnosis {
  readonly check: string
  readonly status: 'ok' | 'warning' | 'failed'
  readonly found: string
  readonly fix?: string
}

/** A {@link Diagnosis} that does not name its check yet. */
export type CheckResult = Omit<Diagnosis, 'check'>

/** Receives the name and the result of a check. */
export type ReportCheck = (check: string, found: CheckResult) => void

export const okResult = (sentence: string): CheckResult => ({ status: 'ok', found: sentence })
export const failedResult = (sentence: string, fix: string): CheckResult => ({ status: 'failed', found: sentence, fix })
export const warningResult = (sentence: string, fix: string): CheckResult => ({
  status: 'warning',
  found: sentence,
  fix,
})
