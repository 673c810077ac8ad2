import type { OpenedCatalog } from '../../config/build.ts'
import { guideFor, withOverview } from '../../config/overview.ts'
import { abilitiesOf, searchesOf, takesWriting } from '../../config/plan.ts'
import { profilesOf } from '../../config/profiles.ts'
import { withMountedSkills } from '../../config/skills.ts'
import { postsUnder, type Writing, writingOf } from '../../config/writing.ts'
import { createMemory } from '../../context/memory.ts'
import { withAssemblePrompt } from '../../context/prompt.ts'
import { callerOf, createAssembleTool, createAssembleTurns } from '../../context/tool.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { createOpening, createOpeningViews, type Opening, type Views } from '../../core/opening.ts'
import type { Principal } from '../../core/provider.ts'
import type { Tool } from '../../core/tool.ts'
import type { View } from '../../core/view.ts'
import { createExplorerApp } from '../../explorer/app.ts'
import type { HttpOptions, ServeOptions } from '../../server/index.ts'
import { addOverHttp, addOverStdio, type Server } from '../hosts/how-to-add.ts'
import { count } from '../terminal/io.ts'
import { packageVersion } from './command-line.ts'
import type { Local } from './local.ts'

/** Announces that a server runs: to a person, how to use it; to a log collector, one event. */
export interface Announcer {
  /** On stdio, started by a person. */
  waiting(): void
  /** On stdio, started by a host. */
  started(log: Log): void
  /** Over HTTP, with the URL of the explorer, if there is one. */
  listening(url: string, page: string | undefined): void
}

interface AnnouncerOptions {
  readonly say: (text: string) => void
  /** Log for events, if stderr is read by programs. */
  readonly log: Log | undefined
  readonly server: Server
  /** Addresses of the mounts. */
  readonly addresses: readonly string[]
  /** Whether the current folder is served because nothing else was named. */
  readonly assumed: boolean
}

const noConfig = 'there is no hikidashi.json here: the current folder is served'

export function createAnnouncer({ say, log, server, addresses, assumed }: AnnouncerOptions): Announcer {
  const sentences = (where: string, ...more: readonly string[]) => {
    const headline = `hikidashi ${packageVersion()} serves ${count(addresses.length, 'mount')} ${where}`
    const mounts = addresses.map((address) => `  ${address}`)
    say([...(assumed ? [`Note: ${noConfig}.`] : []), headline, ...mounts, ...more].join('\n'))
  }
  const event = (to: Log, message: string, fields: Readonly<Record<string, unknown>>) => {
    if (assumed) to('info', noConfig)
    to('info', message, { ...fields, mounts: addresses })
  }
  const started = (to: Log) => event(to, 'serving on stdio', {})
  return {
    started,
    waiting: () => {
      if (log !== undefined) return started(log)
      const ends = 'Or serve it over HTTP: --http 8787. Ctrl-C stops it.'
      sentences('on stdin and stdout, and waits for a client', '', addOverStdio(server), '', ends)
    },
    listening: (url, page) => {
      if (log !== undefined) return event(log, 'serving over HTTP', { url, ...defined({ page }) })
      const explore = page === undefined ? [] : ['', `Explore it in a browser: ${page}`]
      sentences(`at ${url}`, ...explore, '', addOverHttp({ ...server, url }), '', 'Ctrl-C stops it.')
    },
  }
}

/** Service of mounts that are opened later. */
interface ServedLater
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
