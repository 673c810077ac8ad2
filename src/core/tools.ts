import type { Changes } from './changes.ts'
import { base64Of, cleanText, cleanTexts } from './entry.ts'
import { invalid, isResourceError } from './errors.ts'
import type { Mounted } from './mount.ts'
import type { CatalogState } from './paging.ts'
import type { Context, Principal } from './provider.ts'
import type { ProvidedTool, Tool, ToolAnswer, ToolBlock, ToolOutcome, ToolPart } from './tool.ts'
import { tracedSource } from './trace.ts'
import type { ToolView } from './view.ts'

interface MountedTool {
  readonly mount: Mounted
  readonly tool: ProvidedTool
}

/** Creates the tools of all mounts as one principal sees them. Undefined when no mount has any. */
export function createTools(
  state: CatalogState,
  changes: Changes,
  contextOf: (options: { readonly signal?: AbortSignal } | undefined) => Context,
): ToolView | undefined {
  const sources = state.mounts.filter(({ provider }) => provider.tools !== undefined)
  if (sources.length === 0) return undefined

  const listOf = async (mount: Mounted, context: Context): Promise<readonly MountedTool[]> => {
    try {
      const tools = (await mount.provider.tools?.list(context)) ?? []
      return tools.filter(({ path }) => mount.access(context.principal, path)).map((tool) => ({ mount, tool }))
    } catch (error) {
      context.signal.throwIfAborted()
      if (!isResourceError(error)) throw error
      const facts = { mount: mount.address.text, error: error.message }
      state.log('warn', 'the tools of a mount are left out: it is unavailable', facts)
      return []
    }
  }

  return {
    live: changes.ofTools,
    list: async (reserved, options) => {
      const context = contextOf(options)
      const asked = sources.filter((mount) => !mount.isHidden(context.principal))
      const found = (await Promise.all(asked.map((mount) => listOf(mount, context)))).flat()
      return withNames(found, reserved).map((named) => toolOf(named, context.principal))
    },
  }
}

/** Gives each tool its name, or if that is taken or reserved its long name, if necessary with a number. */
function withNames(found: readonly MountedTool[], reserved: ReadonlySet<string>) {
  const taken = new Set(reserved)
  return found.map(({ mount, tool }) => {
    let name = [tool.name, tool.longName].find((choice) => !taken.has(choice))
    for (let number = 2; name === undefined; number++) {
      const choice = `${tool.longName.slice(0, 120)}_${number}`
      if (!taken.has(choice)) name = choice
    }
    taken.add(name)
    return { mount, tool, name }
  })
}

/** Converts a tool of a mount to a tool of MCP. `principal` is the caller, for whom the tool was listed. */
function toolOf({ mount, tool: provided, name }: MountedTool & { readonly name: string }, principal: Principal): Tool {
  const { path, longName: _, description = '', title, ...tool } = provided
  return {
    ...tool,
    ...cleanTexts({ description, ...(title === undefined ? {} : { title }) }),
    description: cleanText(description),
    name,
    call: async (given, { signal }, report) => {
      const context = { principal, signal }
      // The rules may have changed since the tool was listed.
      if (!mount.access(context.principal, path)) throw invalid('There is no such tool.', 'unknown-tool')
      const request = { path, arguments: given, ...(report === undefined ? {} : { report }) }
      const run = async () => mount.provider.tools?.call(request, context)
      const outcome = await Promise.resolve(tracedSource('call', mount.address.text, run)).catch((error: unknown) => {
        // The tool was removed since it was listed.
        throw isResourceError(error, 'not-found') ? invalid('There is no such tool.', 'unknown-tool') : error
      })
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
