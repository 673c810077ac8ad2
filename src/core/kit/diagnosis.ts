/** The result of one check. A fault has a fix: the next command, or a change and its place. */
export interface Diagnosis {
  readonly check: string
  readonly status: 'ok' | 'warning' | 'failed'
  readonly found: string
  readonly fix?: string
}

/** A result before it has the name of its check. */
export type CheckResult = Omit<Diagnosis, 'check'>

/** Takes the result of a check. */
export type Tell = (check: string, found: CheckResult) => void

export const ok = (found: string): CheckResult => ({ status: 'ok', found })
export const failed = (found: string, fix: string): CheckResult => ({ status: 'failed', found, fix })
export const warning = (found: string, fix: string): CheckResult => ({ status: 'warning', found, fix })
