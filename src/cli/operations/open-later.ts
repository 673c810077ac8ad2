import type { OpenedCatalog } from '../../config/build.ts'
import { guideFor } from '../../config/guide.ts'
import { withOverview } from '../../config/overview.ts'
import { abilitiesOf, takesWriting } from '../../config/plan.ts'
import { profilesOf } from '../../config/profiles.ts'
import { searchesOf } from '../../config/searches.ts'
import { withMountedSkills } from '../../config/skills.ts'
import { postsUnder, type Writing, writingOf } from '../../config/writing.ts'
import { createMemory } from '../../context/memory.ts'
import { withAssemblePrompt } from '../../context/prompt.ts'
import { callerOf, createAssembleTool, createAssembleTurns } from '../../context/tool.ts'
import type { Log } from '../../core/log.ts'
import { createOpening, createOpeningViews, type Opening, type Views } from '../../core/opening.ts'
import type { Principal } from '../../core/provider.ts'
import type { Tool } from '../../core/tool.ts'
import type { View } from '../../core/view.ts'
import { createExplorerApp } from '../../explorer/app.ts'
import type { HttpOptions, ServeOptions } from '../../server/index.ts'
import type { Local } from './local.ts'

/** Service of mounts that are opened later. */
export interface ServedLater
  extends Pick<ServeOptions, 'view' | 'profileOf' | 'guide' | 'readingTools' | 'explorerApp' | 'tools'>,
    Pick<HttpOptions, 'postings' | 'llms'> {
  readonly opening: Opening<OpenedCatalog>
}

/**
 * Prepares the service of mounts without opening them. The description of the server comes from the configuration; everything else
 * waits for the opening.
 *
 * @param open Opens the catalog.
 */
export function openLater(local: Local, open: () => Promise<OpenedCatalog>, log: Log): ServedLater {
  const { config, mounts } = local
  let writing: Writing | undefined
  const opening = createOpening(async () => {
    const catalog = await open()
    writing = writingOf(catalog)
    for (const { provider } of searchesOf(catalog)) provider.feed()
    return catalog
  })
  const context = contextFor(local, createOpeningViews(opening, abilitiesOf(mounts)))
  const name = config?.name ?? 'hikidashi'
  const sources = { name, mounts, opened: () => opening.opened }
  const overseen = config?.overview === false ? context : withOverview(context, sources)
  const views = withMountedSkills(overseen, { mounts, log })
  return {
    opening,
    view: views.view,
    profileOf: profilesOf(config?.clients, views),
    guide: guideFor(mounts),
    llms: async (principal, endpoint) => {
      const { writeLlms } = await import('../../config/overview-text.ts')
      return writeLlms(sources, principal, endpoint)
    },
    readingTools: context.tools,
    explorerApp: createExplorerApp(),
    ...(takesWriting(mounts)
      ? {
          tools: (principal) => writing?.tools(principal) ?? [],
          postings: { under: postsUnder, at: (path, principal) => writing?.postingAt(path, principal) },
        }
      : {}),
  }
}

/** The served parts of contexts: the tool, and views with the prompt. */
interface ServedContext extends Views {
  tools(view: View): readonly Tool[]
}

/** All callers share the same turns. */
function contextFor({ config }: Pick<Local, 'config'>, catalog: Views): ServedContext {
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
