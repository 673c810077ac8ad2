import type { Tell } from '../../../core/kit/diagnosis.ts'

/** Receives the results and the progress of the checks. */
export interface Findings {
  readonly tell: Tell
  /** Shows the current step to a waiting person. */
  doing(what: string): void
}
