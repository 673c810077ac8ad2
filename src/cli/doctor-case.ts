import type { PlannedMount } from '../config/plan.ts'
import type { Step } from '../config/problem.ts'
import type { Log } from '../core/log.ts'
import type { Local } from './local.ts'
import type { Secrets } from './secrets.ts'

/** What the checks of a configuration share. */
export interface Case {
  readonly local: Local
  readonly mounts: readonly PlannedMount[]
  readonly limit: number
  readonly log: Log
  readonly secrets: Secrets
  /** Where something stands in the configuration: `hikidashi.json:12: mounts["docs://a"].root`. */
  placeOf(path: readonly Step[]): string
  /** What is given to hikidashi to have it look at the same things. */
  readonly withConfig: string
}
