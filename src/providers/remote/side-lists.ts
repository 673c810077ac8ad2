import type { RemoteView } from '../../client/index.ts'
import type { Change } from '../../core/provider.ts'
import type { CallOptions, Subscription, ViewChange } from '../../core/view.ts'
import type { Kept } from './kept.ts'
import { changedPrompts, type RelayedPrompt } from './prompts.ts'
import { changedTools, type RelayedTool } from './tools.ts'

/** A list of a server besides its resources: prompts or tools. */
export interface SideList {
  readonly what: 'prompts' | 'tools'
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
    what: 'prompts',
    isIn: ({ prompts }) => prompts !== undefined,
    listen: async (subscription, options) => (await subscription?.addPrompts?.(options)) ?? false,
    isChanged: ({ prompts }) => prompts === true,
    renew: async (signal) => {
      const { before, now } = await kept.renew(signal)
      return changedPrompts(before, now)
    },
    setTold: (told) => {
      kept.told = told
    },
  }
}

export function toolList(kept: Kept<readonly RelayedTool[]>): SideList {
  return {
    what: 'tools',
    isIn: ({ remoteTools }) => remoteTools !== undefined,
    listen: async (subscription, options) => (await subscription?.addTools?.(options)) ?? false,
    isChanged: ({ tools }) => tools === true,
    renew: async (signal) => {
      const { before, now } = await kept.renew(signal)
      return changedTools(before, now)
    },
    setTold: (told) => {
      kept.told = told
    },
  }
}
