import { openMount } from '../../config/open-mount.ts'
import { methodsOf, mountSource, type PlannedMount } from '../../config/plan.ts'
import { isResourceError } from '../../core/errors.ts'
import { parseAddress } from '../../core/uri.ts'
import type { MountSettings } from '../../providers/source.ts'
import { checkProvider, type Problem, type PromiseId, promiseIds, promises } from '../../testing/index.ts'
import { commandFailure, usageError } from '../terminal/exit.ts'

export interface ContractReport {
  readonly address: string
  readonly provider: string
  readonly examined: number
  /** Whether there are no more entries than those examined. */
  readonly complete: boolean
  readonly promises: readonly {
    readonly id: PromiseId
    readonly sentence: string
    readonly problems: readonly Problem[]
  }[]
  /** Methods of the provider that differ from the declaration of its source. */
  readonly undeclared: readonly string[]
}

/**
 * Checks the whole contract of providers on the mount at an address.
 * @throws CommandError if there is no mount at the address, or if it cannot be opened
 */
export async function checkContract(
  address: string,
  mounts: readonly PlannedMount[],
  limit: number,
  settings: MountSettings,
): Promise<ContractReport> {
  const bare = (text: string) => text.replace(/\/$/, '')
  const planned = mounts.find((mount) => bare(mount.address) === bare(address))
  if (planned === undefined) {
    const others = mounts.map((mount) => parseAddress(mount.address).text).join(', ')
    throw usageError(`No mount at ${address} can be checked. The mounts that can be: ${others || 'none'}.`)
  }
  const { provider } = await openMount(planned, settings).catch((error: unknown) => {
    throw isResourceError(error) ? commandFailure(error.message) : error
  })
  try {
    const { problems, examined, complete } = await checkProvider(provider, {}, { limit, samples: limit })
    const { watch, prompts, tools, sees, parts } = methodsOf(planned.config)
    const declared = { watch, prompts: prompts !== false, tools: tools === true, sees, parts: parts === true }
    return {
      address: planned.address,
      provider: mountSource(planned.config).name,
      examined,
      complete,
      // The promise `expected` is about given entries, and none are given here.
      promises: promiseIds
        .filter((id) => id !== 'expected')
        .map((id) => ({
          id,
          sentence: promises[id],
          problems: problems.filter(({ promise }) => promise === id),
        })),
      undeclared: Object.entries(declared).flatMap(([name, isDeclared]) =>
        isDeclared === (provider[name as keyof typeof declared] !== undefined) ? [] : [name],
      ),
    }
  } finally {
    await provider.close?.()
  }
}
