import type { RemoteView } from '../../client/index.ts'
import type { Change, ChangedKind } from '../../core/provider.ts'
import type { CallOptions, Subscription, ViewChange } from '../../core/view.ts'
import type { Kept } from './kept.ts'
import { promptDirectory, type RelayedPrompt } from './prompts.ts'
import { type RelayedTool, toolDirectory } from './tools.ts'

/** A list of a server besides its resources: prompts or tools. */
export interface SideList {
  readonly what: ChangedKind
  /** Whether the server declares that it has the list. */
  isIn(view: RemoteView): boolean
  /** Asks the server to notify about changes of the list. Resolves to whether it will. */
  listen(subscription: Subscription | undefined, options: CallOptions): Promise<boolean>
  isChanged(change: ViewChange): boolean
  /** Fetches the list again, and returns the changes. */
  renew(signal: AbortSignal): Promise<readonly Change[]>
  setTold(told: boolean): void
}

export function promptList(kept: Kept<readonly RelayedPrompt[]>): SideList {
  return {
    ...listOf('prompts', promptDirectory, kept, ({ prompt }) => prompt),
    isIn: ({ prompts }) => prompts !== undefined,
    listen: async (subscription, options) => (await subscription?.addPrompts?.(options)) ?? false,
    isChanged: ({ prompts }) => prompts === true,
  }
}

export function toolList(kept: Kept<readonly RelayedTool[]>): SideList {
  return {
    ...listOf('tools', toolDirectory, kept, ({ tool }) => tool),
    isIn: ({ remoteTools }) => remoteTools !== undefined,
    listen: async (subscription, options) => (await subscription?.addTools?.(options)) ?? false,
    isChanged: ({ tools }) => tools === true,
  }
}

/** The members that both lists have. Its changes are the items that were added, removed or changed. */
function listOf<T>(
  what: ChangedKind,
  directory: string,
  kept: Kept<readonly T[]>,
  itemOf: (relayed: T) => { readonly path: string },
): Pick<SideList, 'what' | 'renew' | 'setTold'> {
  const textsOf = (list: readonly T[]) =>
    new Map(list.map(itemOf).map((item) => [item.path, JSON.stringify(item)] as const))
  return {
    what,
    renew: async (signal) => {
      const { before, now } = await kept.renew(signal)
      if (before === undefined) return [{ of: what, path: directory }]
      const [old, fresh] = [textsOf(before), textsOf(now)]
      const paths = [...new Set([...old.keys(), ...fresh.keys()])]
      return paths.filter((path) => old.get(path) !== fresh.get(path)).map((path) => ({ of: what, path }))
    },
    setTold: (told) => {
      kept.told = told
    },
  }
}
