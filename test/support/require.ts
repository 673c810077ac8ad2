import { describe, test } from 'vitest'

/** Defines a suite of tests, as `describe` does. */
export type Suite = (title: string, tests: () => void) => void

/**
 * Returns `describe` for tests that need an optional service. Without it they are skipped, with the reason in their name; if
 * `HIKIDASHI_REQUIRE` (a comma-separated list) names the service, they fail instead. So continuous integration never takes a
 * skipped test for a passed one.
 */
export function requires(service: string, available: boolean, reason: string): Suite {
  if (available) return describe
  if (isRequired(service))
    return (title) =>
      describe(title, () => {
        test(`needs ${service}`, () => {
          throw new Error(`${service} is required here (HIKIDASHI_REQUIRE): ${reason}`)
        })
      })
  return (title, tests) => describe.skip(`${title} (skipped: ${reason})`, tests)
}

/** Whether `HIKIDASHI_REQUIRE` names a service. */
export function isRequired(service: string): boolean {
  return (process.env.HIKIDASHI_REQUIRE ?? '').split(',').some((name) => name.trim() === service)
}
