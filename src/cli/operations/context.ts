import { createMemory } from '../../context/memory.ts'
import { withAssemblePrompt } from '../../context/prompt.ts'
import { callerOf, createAssembleTool, createAssembleTurns } from '../../context/tool.ts'
import type { Views } from '../../core/opening.ts'
import type { Principal } from '../../core/provider.ts'
import type { Tool } from '../../core/tool.ts'
import type { View } from '../../core/view.ts'
import type { Local } from './local.ts'

/** The served parts of contexts: the tool, and views with the prompt. */
export interface ServedContext extends Views {
  tools(view: View): readonly Tool[]
}

/** All of them share their turns, whoever asks by whichever way. */
export function contextFor({ config }: Pick<Local, 'config'>, catalog: Views): ServedContext {
  const turns = createAssembleTurns()
  const memoryOf = createMemory()
  const hasPrompt = config?.context?.prompt ?? true
  const withPrompt = (view: View, principal: Principal) =>
    hasPrompt ? withAssemblePrompt(view, { turns, share: principal.id, memory: memoryOf(callerOf(principal)) }) : view
  return {
    view: (principal) => withPrompt(catalog.view(principal), principal),
    narrowed: (narrowing) => {
      const viewOf = catalog.narrowed(narrowing)
      return (principal) => withPrompt(viewOf(principal), principal)
    },
    tools: (view) => [createAssembleTool(view, { turns, memoryOf })],
  }
}
