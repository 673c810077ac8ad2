import { createHash } from 'node:crypto'
import { type RemoteView, refusalMessage } from '../../client/index.ts'
import { invalid, isResourceError, notFound } from '../../core/errors.ts'
import { pathOfForeign } from '../../core/foreign.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { comparePaths, isPath } from '../../core/path.ts'
import type { Prompt, PromptArgument, PromptMessage, PromptPart, Prompts } from '../../core/provider.ts'
import { nameOfAddress, parseAddress } from '../../core/uri.ts'
import type { ListedPrompt, PromptContent } from '../../core/view.ts'
import { shorten } from '../../text/excerpt.ts'
import { collectPages, describeEntry, maxTextLengths, relayableMeta, toRemoteEntry } from './entries.ts'
import { type ServerConnection, translateRemoteError } from './session.ts'
import { currentOf, type SnapshotKeeper } from './snapshot.ts'

export interface RelayedPrompt {
  readonly prompt: Prompt
  readonly name: string
}

/** The directory of the prompts, for access rules. No URI of a server has this path. */
export const promptDirectory = '=prompts/'

const maxPrompts = 1000
const maxArguments = 100
/** Maximum length of a completed value, in characters. */
const maxValueLength = 2048

export async function fetchPrompts(
  view: RemoteView,
  { mark, address, log, signal }: ListFetchOptions,
): Promise<readonly RelayedPrompt[]> {
  const { prompts } = view
  if (prompts === undefined) return []
  const listedPrompts = await collectPages(
    'prompts',
    maxPrompts,
    (query) => prompts.list(query, { signal }),
    (listed) => {
      const { name } = listed
      if (name === '' || name.length > maxNameLength) {
        log('warn', 'a prompt of the server is left out: its name is empty or too long', { name: name.slice(0, 200) })
        return undefined
      }
      const prompt = promptOf(listed, mark, address)
      return prompt && [prompt.path, { prompt, name }]
    },
  )
  return listedPrompts.sort((a, b) => comparePaths(a.prompt.path, b.prompt.path))
}

/** Undefined: this process relayed the prompt to the server. */
function promptOf(prompt: ListedPrompt, mark: string, address: string | undefined): Prompt | undefined {
  const { name, arguments: declared, ...facts } = prompt
  const described = describeEntry(facts, mark)
  if (described === undefined) return undefined
  const { title, description, icons, meta } = described
  return {
    path: pathOfName(promptDirectory, name),
    name,
    longName: longNameOf(address, name),
    ...defined({ title, description, icons, meta }),
    ...(declared === undefined ? {} : { arguments: limitPromptArguments(declared) }),
  }
}

function limitPromptArguments(declared: NonNullable<ListedPrompt['arguments']>): readonly PromptArgument[] {
  const namedArguments = declared.filter(({ name }) => name.length <= maxNameLength).slice(0, maxArguments)
  return namedArguments.map(({ name, title, description, required }) => ({
    name,
    ...defined({ required }),
    ...(title === undefined ? {} : { title: shorten(title, maxTextLengths.title) }),
    ...(description === undefined ? {} : { description: shorten(description, maxTextLengths.description) }),
  }))
}

export function createRelayedPrompts(
  keeper: SnapshotKeeper<readonly RelayedPrompt[]>,
  session: ServerConnection,
  mark: string,
): Prompts {
  const find = async (path: string, signal: AbortSignal): Promise<string> => {
    const relayedPrompt = (await keeper.current(signal)).find(({ prompt }) => prompt.path === path)
    if (relayedPrompt === undefined) throw notFound('the server lists no such prompt')
    return relayedPrompt.name
  }
  return {
    separate: true,
    list: async ({ signal, answerBy }) => (await currentOf(keeper, signal, answerBy)).map(({ prompt }) => prompt),
    get: async ({ path, arguments: values }, { signal }) => {
      const name = await find(path, signal)
      try {
        const { description, messages } = await session.ask(({ prompts }) => {
          if (prompts === undefined) throw notFound('the server has no prompts now')
          return prompts.get({ name, arguments: values }, { signal })
        }, signal)
        return {
          ...(description === undefined ? {} : { description: shorten(description, maxTextLengths.description) }),
          messages: messages.map(
            ({ role, content }): PromptMessage => ({ role, content: toPromptPart(content, mark) }),
          ),
        }
      } catch (error) {
        signal.throwIfAborted()
        // The words of the server tell how to correct the arguments.
        const words = refusalMessage(error)
        if (words !== undefined)
          throw invalid(
            `The server behind this mount refuses the prompt: ${shorten(words, maxTextLengths.title)}`,
            'refused',
          )
        throw translateRemoteError(error)
      }
    },
    complete: async ({ path, argument, arguments: argumentValues }, { signal }) => {
      const name = await find(path, signal)
      try {
        const request = { name, argument, arguments: argumentValues }
        const answer = session.ask(async ({ prompts }) => prompts?.complete(request, { signal }), signal)
        const { values, ...rest } = (await answer) ?? { values: [] }
        return { ...rest, values: values.filter((value) => value.length <= maxValueLength) }
      } catch (error) {
        signal.throwIfAborted()
        // Some servers refuse to complete an argument for which they have no values.
        if (isResourceError(error, 'invalid')) return { values: [] }
        throw translateRemoteError(error)
      }
    },
  }
}

/** A resource gets the path of its URI, so that the access rules apply to it. */
export function toPromptPart(content: PromptContent, mark: string): PromptPart {
  if ('resource' in content) {
    const { uri, name: _, meta, ...rest } = content.resource
    const metaMember = meta === undefined ? {} : { meta: relayableMeta(meta) }
    return { content: { ...rest, ...metaMember, path: pathOfForeign(uri) } }
  }
  if ('link' in content) {
    const entry = toRemoteEntry(content.link, mark)
    return entry === undefined ? { text: content.link.uri } : { entry: entry.entry }
  }
  return content
}

export interface ListFetchOptions {
  readonly mark: string
  readonly address: string | undefined
  readonly log: Log
  readonly signal: AbortSignal
}

/** Maximum length of the name of a prompt or a tool, in characters. */
export const maxNameLength = 256

/**
 * Returns the path below a directory for a name, for access rules. A name that no path may hold gets its hash.
 *
 * @param directory A directory that no path of a URI is in, which ends in `/`.
 */
export function pathOfName(directory: string, name: string): string {
  const path = `${directory}${name}`
  const isPlain = isPath(path) && !name.startsWith('=') && !path.endsWith('/')
  return isPlain ? path : `${directory}=${createHash('sha256').update(name).digest('base64url')}`
}

/** Returns a name prefixed with the name of the mount, for use when the plain name is taken. */
export function longNameOf(address: string | undefined, name: string): string {
  const mount = address === undefined ? 'remote' : nameOfAddress(parseAddress(address))
  return `${mount.replace(/[^A-Za-z0-9-]+/g, '_')}_${name}`
}
