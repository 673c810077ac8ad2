import { pathsOfNames } from './access.ts'
import type { ChangeSubscriptions } from './changes.ts'
import { base64Of, cleanText, cleanTexts } from './entry.ts'
import { invalid, isResourceError } from './errors.ts'
import { unavailableMounts, withListDeadline } from './listing.ts'
import type { Mounted } from './mount.ts'
import type { CatalogState } from './paging.ts'
import type { Context, Principal } from './provider.ts'
import type { ProvidedTool, Tool, ToolAnswer, ToolBlock, ToolOutcome, ToolPart } from './tool.ts'
import { runSourceInSpan } from './trace.ts'
import type { ToolView } from './view.ts'

interface MountedTool {
  readonly mount: Mounted
  readonly tool: ProvidedTool
}

/** Creates the view of the tools of all mounts. Undefined when no mount can have tools. */
export function createTools(
  state: CatalogState,
  changes: ChangeSubscriptions,
  contextOf: (options: { readonly signal?: AbortSignal } | undefined) => Context,
): ToolView | undefined {
  const sources = state.mounts.filter(({ provider }) => provider.tools !== undefined)
  if (sources.length === 0) return undefined

  const listOf = async (mount: Mounted, context: Context): Promise<readonly MountedTool[] | undefined> => {
    try {
      return ((await mount.provider.tools?.list(context)) ?? []).map((tool) => ({ mount, tool }))
    } catch (error) {
      context.signal.throwIfAborted()
      if (!isResourceError(error)) throw error
      const facts = { mount: mount.address.text, error: error.message }
      state.log('warn', 'the tools of a mount are left out: they cannot be listed', facts)
      return undefined
    }
  }

  return {
    live: changes.ofTools,
    list: async (reserved, options) => {
      const own = contextOf(options)
      const context = options?.soon === true ? withListDeadline(sources, own, state.mounts) : own
      const visibleMounts = sources.filter((mount) => !mount.isHidden(context.principal))
      const toolLists = await Promise.all(visibleMounts.map((mount) => listOf(mount, context)))
      const all = toolLists.flatMap((tools) => tools ?? [])
      const failedMounts = visibleMounts.filter((_, index) => toolLists[index] === undefined)
      return {
        tools: visibleTools(all, reserved, context.principal).map((tool) => toolOf(tool, context.principal)),
        ...unavailableMounts(failedMounts, context.principal),
      }
    },
  }
}

interface NamedTool extends MountedTool {
  readonly name: string
}

/**
 * Returns the tools that a principal may see, each with its name: its own, or if that is taken or reserved its long name, if
 * necessary with a number. A name that was changed for hosts is given after those that needed no change. A tool that the principal
 * may not see takes no name.
 */
function visibleTools(
  tools: readonly MountedTool[],
  reserved: ReadonlySet<string>,
  principal: Principal,
): readonly NamedTool[] {
  const usedNames = new Set(reserved)
  const toolsByTool = new Map<MountedTool, NamedTool>()
  const isUnchanged = ({ tool }: MountedTool) => pathsOfNames(tool.path, [tool.name]).length === 0
  for (const one of [...tools.filter(isUnchanged), ...tools.filter((other) => !isUnchanged(other))]) {
    const name = freeName(one.tool, usedNames)
    if (!maySee({ ...one, name }, principal)) continue
    usedNames.add(name)
    toolsByTool.set(one, { ...one, name })
  }
  return tools.flatMap((one) => toolsByTool.get(one) ?? [])
}

function freeName({ name, longName }: ProvidedTool, usedNames: ReadonlySet<string>): string {
  const free = [name, longName].find((choice) => !usedNames.has(choice))
  if (free !== undefined) return free
  for (let number = 2; ; number++) {
    const choice = `${longName.slice(0, 120)}_${number}`
    if (!usedNames.has(choice)) return choice
  }
}

/** Whether a principal may see a tool: the rules hold for the path of the tool, and for the names that hosts show. */
function maySee({ mount, tool, name }: NamedTool, principal: Principal): boolean {
  return mount.access(principal, tool.path, pathsOfNames(tool.path, [tool.name, name]))
}

function toolOf(namedTool: NamedTool, principal: Principal): Tool {
  const { mount, tool: provided, name } = namedTool
  const { path, longName: _, description = '', title, ...tool } = provided
  return {
    ...tool,
    ...cleanTexts({ description, ...(title === undefined ? {} : { title }) }),
    description: cleanText(description),
    name,
    call: async (args, { signal }, report) => {
      const context = { principal, signal }
      // The rules may have changed since the tool was listed.
      if (!maySee(namedTool, principal)) throw invalid('There is no such tool.', 'unknown-name')
      const request = { path, arguments: args, ...(report === undefined ? {} : { report }) }
      const run = async () => mount.provider.tools?.call(request, context)
      const outcome = await Promise.resolve(runSourceInSpan('call', mount.address.text, run)).catch(
        (error: unknown) => {
          // The tool was removed since it was listed.
          throw isResourceError(error, 'not-found') ? invalid('There is no such tool.', 'unknown-name') : error
        },
      )
      return answerOf(outcome ?? { parts: [] }, mount, context)
    },
  }
}

/** Converts the result of a tool. A part at a path that the caller may not see is left out, as if the tool had not returned it. */
function answerOf({ parts, structured, failed }: ToolOutcome, mount: Mounted, { principal }: Context): ToolAnswer {
  const isVisible = (part: ToolPart) => {
    if ('content' in part) return mount.access(principal, part.content.path)
    return 'entry' in part ? mount.access(principal, part.entry.path) : true
  }
  return {
    text: '',
    blocks: parts.filter(isVisible).map((part) => blockOf(part, mount)),
    ...(structured === undefined ? {} : { structured }),
    ...(failed === true ? { failed } : {}),
  }
}

function blockOf(part: ToolPart, mount: Mounted): ToolBlock {
  if ('text' in part) return { type: 'text', text: part.text }
  if ('link' in part) return { type: 'link', resource: part.link }
  if ('entry' in part) return { type: 'link', resource: mount.resourceOf(part.entry) }
  if ('bytes' in part) {
    const type = part.mimeType.startsWith('audio/') ? 'audio' : 'image'
    return { type, data: base64Of(part.bytes), mimeType: part.mimeType }
  }
  const { content } = part
  const uri = mount.uriOf(content.path)
  const { mimeType } = content
  if ('text' in content)
    return { type: 'embedded', resource: { uri, text: content.text, ...(mimeType === undefined ? {} : { mimeType }) } }
  // A result is held in memory: no source returns a stream here.
  const bytes = 'bytes' in content ? content.bytes : new Uint8Array()
  return { type: 'resource', uri, mimeType: mimeType ?? 'application/octet-stream', blob: base64Of(bytes) }
}
