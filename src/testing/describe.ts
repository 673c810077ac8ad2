import type { Provider } from '../core/provider.ts'
import { type CheckOptions, checkProvider, type Expectation, formatProblem, type Report } from './check.ts'
import { promiseIds, promises } from './promises.ts'

/** The two functions of a test framework that the suite needs: those of vitest, Jest and node:test fit. */
export interface Framework {
  readonly describe: (name: string, body: () => void) => unknown
  readonly test: (name: string, body: () => Promise<void>) => unknown
}

/** A provider to check, made fresh for the suite. */
export interface Subject {
  readonly provider: Provider
  /** Must contain the listed entries: an empty listing would keep every promise. */
  readonly expectation: Expectation & Required<Pick<Expectation, 'entries'>>
  /** Called when the suite is done, once the provider is closed: removes a folder, stops a server. */
  readonly dispose?: () => unknown
}

/**
 * Registers one test for each promise of the Provider interface, and again for each wrapper of `options.through`.
 *
 * The provider is made and checked once, by the first test that runs; the tests then show what was found.
 */
export function describeProvider(
  { describe, test }: Framework,
  name: string,
  make: () => Subject | Promise<Subject>,
  options: CheckOptions = {},
): void {
  let checked: Promise<Report> | undefined
  const check = async () => {
    const { provider, expectation, dispose } = await make()
    try {
      return await checkProvider(provider, expectation, options)
    } finally {
      await provider.close?.()
      await dispose?.()
    }
  }
  const register = (through: string | undefined) => {
    for (const id of promiseIds) {
      const reason = options.except?.[id]
      test(reason === undefined ? promises[id] : `${promises[id]} (Not promised: ${reason})`, async () => {
        checked ??= check()
        const problems = (await checked).problems.filter((item) => item.promise === id && item.through === through)
        if (problems.length > 0) throw new Error(problems.map(formatProblem).join('\n'))
      })
    }
  }
  describe(name, () => register(undefined))
  for (const wrapper of Object.keys(options.through ?? {}))
    describe(`${name}, through ${wrapper}`, () => register(wrapper))
}
