import type { PlannedMount } from '../../../config/plan.ts'
import type { Step } from '../../../config/problem.ts'
import type { Log } from '../../../core/log.ts'
import type { Local } from '../local.ts'
import type { Secrets } from '../secrets.ts'

/** Shared facts of the checks of a configuration. */
export interface Case {
  readonly local: Local
  readonly mounts: readonly PlannedMount[]
  readonly limit: number
  readonly log: Log
  readonly secrets: Secrets
  /** Returns a place in the configuration, such as `hikidashi.json:12: mounts["docs://a"].root`. */
  placeOf(path: readonly Step[]): string
  /** Arguments that make another command use the same configuration. */
  readonly withConfig: string
}
