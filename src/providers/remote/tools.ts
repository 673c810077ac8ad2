import {
  isErrorAnswer,
  isHeaderMismatchError,
  outputFault,
  type RemoteView,
  refusalMessage,
} from '../../client/index.ts'
import type { RemoteTool, RemoteToolResult } from '../../client/target.ts'
import { pathsOfNames } from '../../core/access.ts'
import { isResourceError, notFound } from '../../core/errors.ts'
import { defined, isDeeperThan } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { comparePaths } from '../../core/path.ts'
import type { Change, ChangedKind } from '../../core/provider.ts'
import type { ProvidedTool, ToolOutcome, ToolPart, Tools } from '../../core/tool.ts'
import type { CallOptions, Subscription, ViewChange } from '../../core/view.ts'
import { shorten } from '../../text/excerpt.ts'
import { collectPages, describeEntry, maxTextLengths } from './entries.ts'
import { type ListFetchOptions, longNameOf, maxNameLength, pathOfName, toPromptPart } from './prompts.ts'
import { type ServerConnection, toListError, translateRemoteError } from './session.ts'
import type { SnapshotKeeper } from './snapshot.ts'

interface RelayedTool {
  readonly tool: ProvidedTool
  readonly listed: Pick<RemoteTool, 'name' | 'paramHeaders' | 'outputSchema'>
}

/** The directory of the tools, for access rules. No URI of a server has this path. */
export const toolDirectory = '=tools/'

const maxTools = 1000
/**
 * Maximum length of a schema, in characters of JSON. A longer input schema becomes one that accepts any object; a longer output schema is
 * left out.
 */
const maxSchemaLength = 256 * 1024
/** Maximum depth of a schema. A tool with a deeper one is left out. */
const maxSchemaDepth = 200
/** Maximum length of a tool's name, in characters (MCP 2025-11-25). */
const maxToolName = 128

export async function fetchTools(
  view: RemoteView,
  { mark, address, log, signal }: ListFetchOptions,
): Promise<readonly RelayedTool[]> {
  const { remoteTools } = view
  if (remoteTools === undefined) return []
  const tools = await collectPages(
    'tools',
    maxTools,
    (query) => remoteTools.list(query, { signal }),
    (listed) => {
      const fault = faultOfTool(listed)
      if (fault !== undefined) {
        log('warn', `a tool of the server is left out: ${fault}`, { name: listed.name.slice(0, 200) })
        return undefined
      }
      const tool = toolOf(listed, mark, address)
      return tool && [tool.path, { tool, listed }]
    },
  )
  return tools.sort((a, b) => comparePaths(a.tool.path, b.tool.path))
}

function faultOfTool({ name, inputSchema, outputSchema = {} }: RemoteTool): string | undefined {
  if (name === '' || name.length > maxNameLength) return 'its name is empty or too long'
  const isDeep = isDeeperThan(maxSchemaDepth, inputSchema) || isDeeperThan(maxSchemaDepth, outputSchema)
  return isDeep ? `one of its schemas is nested over ${maxSchemaDepth} levels deep` : undefined
}

/** Undefined: this process relayed the tool to the server. */
function toolOf(tool: RemoteTool, mark: string, address: string | undefined): ProvidedTool | undefined {
  const { name, inputSchema, outputSchema, annotations, paramHeaders: _, ...facts } = tool
  const described = describeEntry(facts, mark)
  if (described === undefined) return undefined
  const { title, description, icons, meta } = described
  const isShort = (schema: object) => JSON.stringify(schema).length <= maxSchemaLength
  return {
    path: pathOfName(toolDirectory, name),
    name: wireName(name),
    longName: wireName(longNameOf(address, name)),
    ...defined({ title, description, annotations, icons, meta }),
    inputSchema: isShort(inputSchema) ? { ...inputSchema, type: 'object' } : { type: 'object' },
    ...(outputSchema !== undefined && isShort(outputSchema) ? { outputSchema } : {}),
  }
}

/** Replaces the characters that hosts do not accept in the name of a tool. */
function wireName(name: string): string {
  return name.replace(/[^A-Za-z0-9_.-]/g, '_').slice(0, maxToolName)
}

export function createRelayedTools(
  keeper: SnapshotKeeper<readonly RelayedTool[]>,
  session: ServerConnection,
  { mark, log }: Pick<ListFetchOptions, 'mark' | 'log'>,
): Tools {
  const current = async (signal: AbortSignal, answerBy?: number): Promise<readonly RelayedTool[]> => {
    try {
      return await keeper.current(signal, answerBy)
    } catch (error) {
      signal.throwIfAborted()
      // If the server is down, a call must report that, and not that the tool is missing.
      if (keeper.last !== undefined) return keeper.last
      throw toListError(error)
    }
  }
  return {
    list: async ({ signal, answerBy }) => (await current(signal, answerBy)).map(({ tool }) => tool),
    call: async ({ path, arguments: args, report }, { signal }) => {
      const find = async () => {
        const relayedTool = (await current(signal)).find(({ tool }) => tool.path === path)
        if (relayedTool === undefined) throw notFound('the server lists no such tool')
        return relayedTool
      }
      const options = { signal, ...(report === undefined ? {} : { onProgress: report }) }
      const call = async ({ listed }: RelayedTool): Promise<ToolOutcome> => {
        const view = await session.open(signal).catch((error: unknown) => {
          signal.throwIfAborted()
          throw translateRemoteError(error)
        })
        const { remoteTools } = view
        if (remoteTools === undefined) throw notFound('the server has no tools now')
        try {
          return outcomeOf(await session.askOnce(() => remoteTools.call(listed, args, options), view, signal), mark)
        } catch (error) {
          signal.throwIfAborted()
          if (isHeaderMismatchError(error)) throw error
          return toFailureOutcome(error, listed.name, log)
        }
      }
      try {
        return await call(await find())
      } catch (error) {
        signal.throwIfAborted()
        if (!isHeaderMismatchError(error)) throw error
        log('info', 'the server refuses the headers of a call: its tools are listed again', {})
      }
      // The server declares other headers now, and has not run the tool, so the call can be repeated.
      try {
        await keeper.renew(signal)
        return await call(await find())
      } catch (error) {
        signal.throwIfAborted()
        throw translateRemoteError(error)
      }
    },
  }
}

/** @throws ResourceError for a failure that the model cannot act on. */
function toFailureOutcome(error: unknown, tool: string, log: Log): ToolOutcome {
  // The model needs the words of the server to correct the call.
  const words = refusalMessage(error)
  if (words !== undefined) return { parts: [{ text: shorten(words, maxTextLengths.title) }], failed: true }
  if (isResourceError(error, 'internal') && error.detail.fault === outputFault) {
    log('warn', 'the result of a tool does not match its output schema', { tool, error })
    return { parts: [{ text: wrongOutput }], failed: true }
  }
  if (!isResourceError(error, 'unavailable') || isErrorAnswer(error)) throw translateRemoteError(error)
  log('warn', 'the server gave no answer to the call of a tool', { tool, error })
  return { parts: [{ text: noAnswer }], failed: true }
}

const wrongOutput =
  'The tool ran, but its structured result does not match its output schema, so the result is left out.'

const noAnswer =
  'The server behind this tool did not answer. The tool may or may not have run: check its effects before you call it again.'

function outcomeOf({ content, structured, failed }: RemoteToolResult, mark: string): ToolOutcome {
  const parts = content.flatMap((block): readonly ToolPart[] => {
    const part = toPromptPart(block, mark)
    return 'uri' in part ? [] : [part]
  })
  return { parts, ...defined({ structured }), ...(failed ? { failed } : {}) }
}

/** Members of a view and of a subscription for the lists of prompts and of tools. */
const membersFor = {
  prompts: { list: 'prompts', listen: 'addPrompts' },
  tools: { list: 'remoteTools', listen: 'addTools' },
} as const

export type SideList = ReturnType<typeof sideListOf>

export function sideListOf<T>(
  what: ChangedKind,
  directory: string,
  keeper: SnapshotKeeper<readonly T[]>,
  itemOf: (relayed: T) => { readonly path: string; readonly name: string },
) {
  const members = membersFor[what]
  const itemsByPath = (list: readonly T[]) => new Map(list.map(itemOf).map((item) => [item.path, item] as const))
  return {
    what,
    isIn: (view: RemoteView): boolean => view[members.list] !== undefined,
    /** Asks the server to notify about changes of the list. Resolves to whether it will. */
    listen: async (subscription: Subscription | undefined, options: CallOptions): Promise<boolean> =>
      (await subscription?.[members.listen]?.(options)) ?? false,
    isChanged: (change: ViewChange): boolean => change[what] === true,
    renew: async (signal: AbortSignal): Promise<readonly Change[]> => {
      const { before, now } = await keeper.renew(signal)
      if (keeper.takeMissed() || before === undefined) return [{ of: what, path: directory }]
      const [old, fresh] = [itemsByPath(before), itemsByPath(now)]
      return [...new Map([...old, ...fresh])]
        .filter(([path]) => JSON.stringify(old.get(path)) !== JSON.stringify(fresh.get(path)))
        .map(([path, { name }]) => ({ of: what, path, aliases: pathsOfNames(path, [name]) }))
    },
    setTold: (isTold: boolean): void => {
      keeper.told = isTold
    },
  }
}
