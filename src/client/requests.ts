import { defined } from '../core/kit/object.ts'
import type { Completion, FilledPrompt } from '../core/provider.ts'
import {
  type CallOptions,
  directoryMimeType,
  type ListedPrompt,
  type Page,
  type PromptContent,
  type ReadResult,
  type Resource,
  type ResourceTemplate,
  type ViewCompletionRequest,
} from '../core/view.ts'
import {
  cacheOf,
  completionOf,
  contentsOf,
  cursorOf,
  decodeBase64,
  directoryPageOf,
  filledPromptOf,
  mountsOf,
  promptPageOf,
  resourcePageOf,
  templatePageOf,
  type Wire,
} from './wire.ts'

/** Sends one request and resolves to its result. */
type Ask = (method: string, params: Wire, options: CallOptions | undefined) => Promise<Wire>

/** The requests that a view of a server is made of. Results are core types, cursors are those of the server. */
export interface Requests {
  /** Lists resources. `mounts`: those of a hikidashi server, which its first page names. */
  resources(cursor: string | undefined, options: CallOptions | undefined): Promise<ResourcesResult>
  templates(cursor: string | undefined, options: CallOptions | undefined): Promise<Page<ResourceTemplate>>
  directory(uri: string, cursor: string | undefined, options: CallOptions | undefined): Promise<Page<Resource>>
  read(uri: string, options: CallOptions | undefined): Promise<ReadResult>
  /** Completes a variable of what `ref` names: a template of resources, or a prompt. */
  complete(ref: Wire, asked: Asked, options: CallOptions | undefined): Promise<Completion>
  prompts(cursor: string | undefined, options: CallOptions | undefined): Promise<Page<ListedPrompt>>
  prompt(
    name: string,
    given: ReadonlyMap<string, string> | undefined,
    options: CallOptions | undefined,
  ): Promise<FilledPrompt<PromptContent>>
}

export interface ResourcesResult {
  readonly page: Page<Resource>
  readonly mounts?: readonly Resource[]
}

/** A variable to complete, and the values of those that are filled in already. */
export type Asked = Omit<ViewCompletionRequest, 'uriTemplate'>

/** @param decode Decodes base64. A browser passes its own function. */
export function createRequests(ask: Ask, decode = decodeBase64): Requests {
  const at = (cursor: string | undefined): Wire => (cursor === undefined ? {} : { cursor })
  const pageOf = <T>(answer: Wire, page: Omit<Page<T>, 'nextCursor'>): Page<T> => ({
    ...page,
    ...defined({ nextCursor: cursorOf(answer) }),
  })
  return {
    resources: async (cursor, options) => {
      const answer = await ask('resources/list', at(cursor), options)
      const mounts = mountsOf(answer)?.map((mount) => ({ ...mount, mimeType: mount.mimeType ?? directoryMimeType }))
      return { page: pageOf(answer, resourcePageOf(answer)), ...defined({ mounts }) }
    },
    templates: async (cursor, options) => {
      const answer = await ask('resources/templates/list', at(cursor), options)
      return pageOf(answer, templatePageOf(answer))
    },
    directory: async (uri, cursor, options) => {
      const answer = await ask('resources/directory/read', { uri, ...at(cursor) }, options)
      return pageOf(answer, directoryPageOf(answer))
    },
    read: async (uri, options) => {
      const answer = await ask('resources/read', { uri }, options)
      return { contents: contentsOf(answer, uri, decode), cache: cacheOf(answer) }
    },
    complete: async (ref, { argument, arguments: given }, options) => {
      const context =
        given === undefined || given.size === 0 ? {} : { context: { arguments: Object.fromEntries(given) } }
      return completionOf(await ask('completion/complete', { ref, argument, ...context }, options))
    },
    prompts: async (cursor, options) => {
      const answer = await ask('prompts/list', at(cursor), options)
      return pageOf(answer, promptPageOf(answer))
    },
    prompt: async (name, given = new Map(), options) =>
      filledPromptOf(await ask('prompts/get', { name, arguments: Object.fromEntries(given) }, options), decode),
  }
}
