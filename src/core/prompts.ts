import { pathsOfNames } from './access.ts'
import type { ChangeSubscriptions } from './changes.ts'
import { completeFromValues, maxCompletions } from './completion.ts'
import { cleanText, cleanTexts, contentLength } from './entry.ts'
import { fallbackTo, invalid, isResourceError, type ResourceError } from './errors.ts'
import { cursorScope, unavailableMounts, withListDeadline } from './listing.ts'
import type { Mounted } from './mount.ts'
import { type CatalogState, createPageBuilder } from './paging.ts'
import { baseName, comparePaths } from './path.ts'
import type { Completion, Context, Principal, Prompt, PromptArgument, PromptMessage, PromptPart } from './provider.ts'
import { runSourceInSpan } from './trace.ts'
import type { ListedArgument, ListedPrompt, Page, PromptContent, PromptView, View } from './view.ts'

interface MountPrompt {
  readonly mount: Mounted
  readonly prompt: Prompt
  readonly name: string
}

const maxArgument = 65_536
/** Limits of the contents in one prompt (resources, images, sounds): their total size in bytes, and their number. */
const [maxEmbeddedBytes, maxContents] = [4 * 1024 * 1024, 100]

/**
 * Creates the view of the prompts of all mounts. Undefined when no mount can have prompts.
 * When a principal sees two prompts of the same name, the first in the order of addresses and paths has the name
 * (prompts of other servers come last), and the others are called by their long names or URIs.
 */
export function createPrompts(
  state: CatalogState,
  changes: ChangeSubscriptions,
  view: Pick<View, 'read' | 'complete'>,
  contextOf: (options: { readonly signal?: AbortSignal } | undefined) => Context,
): PromptView | undefined {
  const sources = state.mounts.filter(({ provider }) => provider.prompts !== undefined)
  if (sources.length === 0) return undefined

  const gather = async (context: Context) => {
    const failedMounts: Mounted[] = []
    let failure: ResourceError | undefined
    const visibleMounts = sources.filter((mount) => !mount.isHidden(context.principal))
    const listOf = async (mount: Mounted): Promise<readonly Omit<MountPrompt, 'name'>[]> => {
      try {
        const prompts = (await mount.provider.prompts?.list(context)) ?? []
        return prompts.map((prompt) => ({ mount, prompt }))
      } catch (error) {
        if (!isResourceError(error, 'unavailable')) throw error
        const facts = { mount: mount.address.text, error: error.message }
        state.log('warn', 'the prompts of a mount are left out: it is unavailable', facts)
        failedMounts.push(mount)
        failure ??= error
        return []
      }
    }
    const mountPrompts = visiblePrompts((await Promise.all(visibleMounts.map(listOf))).flat(), context.principal)
    if (failure !== undefined && failedMounts.length === visibleMounts.length) throw failure
    return { named: mountPrompts, missing: unavailableMounts(failedMounts, context.principal) }
  }

  const find = async (name: string, context: Context): Promise<MountPrompt> => {
    const prompt = (await gather(context)).named.find((one) => one.name === name)
    if (prompt === undefined) throw invalid('There is no such prompt.', 'unknown-name')
    return prompt
  }

  const list = async (cursor: string | undefined, context: Context): Promise<Page<ListedPrompt>> => {
    const scope = cursorScope('prompts', context.principal)
    const [page, ...after] =
      cursor === undefined ? [0] : (JSON.parse(state.seal.open(scope, cursor)) as [number, string, string])
    const { named, missing } = await gather(withListDeadline(sources, context, state.mounts))
    const rest = named.filter((one) => isBehind(one, after))
    const builder = createPageBuilder<ListedPrompt>(state.paging, page)
    const cache = { ttlMs: Math.min(...sources.map((mount) => mount.cache.ttlMs)), scope: 'private' } as const
    let last: readonly string[] = []
    for (const one of rest) {
      const prompt = listedOf(one)
      if (!builder.add(prompt, 3 * JSON.stringify(prompt).length)) {
        const nextCursor = state.seal.seal(scope, JSON.stringify([page + 1, ...last]))
        return { items: builder.items, nextCursor, cache, ...missing }
      }
      last = [one.mount.address.text, one.prompt.path]
    }
    return { items: builder.items, cache, ...missing }
  }

  return {
    live: changes.ofPrompts,
    list: (query, options) => list(query?.cursor, contextOf(options)),
    get: async ({ name, arguments: promptRequest = new Map() }, options) => {
      const context = contextOf(options)
      const { mount, prompt } = await find(name, context)
      checkArguments(prompt.arguments ?? [], promptRequest)
      const request = { path: prompt.path, arguments: promptRequest }
      const run = async () => mount.provider.prompts?.get(request, context)
      const answer = await Promise.resolve(runSourceInSpan('prompt', mount.address.text, run)).catch(
        (error: unknown) => {
          // The prompt was removed since it was listed.
          throw isResourceError(error, 'not-found') ? invalid('There is no such prompt.', 'unknown-name') : error
        },
      )
      const { messages = [], description } = answer ?? {}
      return {
        ...(description === undefined ? {} : { description: cleanText(description) }),
        messages: await fillMessages(messages, mount, view, context),
      }
    },
    complete: async ({ name, argument, arguments: filled }, options) => {
      const context = contextOf(options)
      const { mount, prompt } = await find(name, context)
      const { complete } = mount.provider.prompts ?? {}
      if (complete !== undefined) {
        const request = { path: prompt.path, argument, arguments: filled ?? new Map<string, string>() }
        const { values, ...rest } = await complete(request, context)
        return { ...rest, values: values.slice(0, maxCompletions) }
      }
      const declared = prompt.arguments?.find((one) => one.name === argument.name)
      if (declared?.from === undefined) return completeFrom(declared?.values ?? [], argument.value)
      const { uriTemplate, variable } = declared.from
      const completionRequest = { uriTemplate, argument: { name: variable, value: argument.value } }
      const request = filled === undefined ? completionRequest : { ...completionRequest, arguments: filled }
      // The error `invalid` means that this caller may not see the template.
      return view.complete(request, { signal: context.signal }).catch(fallbackTo({ values: [] }, 'invalid'))
    },
  }
}

/** Denied and missing resources give the same error. */
async function embed(uri: string, view: Pick<View, 'read'>, context: Context): Promise<readonly PromptContent[]> {
  const { contents } = await view.read(uri, { signal: context.signal }).catch((error: unknown) => {
    if (!isResourceError(error, 'not-found')) throw error
    throw invalid('A resource that this prompt includes does not exist.', 'argument', { uri: uri.slice(0, 1024) })
  })
  return contents.map((resource) => ({ resource }))
}

async function contentsOf(
  part: PromptPart,
  mount: Mounted,
  view: Pick<View, 'read'>,
  context: Context,
): Promise<readonly PromptContent[]> {
  if ('uri' in part) return embed(part.uri, view, context)
  if ('text' in part || 'bytes' in part) return [part]
  const { path } = 'entry' in part ? part.entry : part.content
  const uri = mount.uriOf(path)
  if (!mount.access(context.principal, path))
    throw invalid('A resource that this prompt includes does not exist.', 'argument', { uri: uri.slice(0, 1024) })
  if ('entry' in part) return [{ link: mount.resourceOf(part.entry) }]
  return [{ resource: { ...cleanTexts(part.content), uri, name: baseName(path) } }]
}

async function fillMessages(
  messages: readonly PromptMessage[],
  mount: Mounted,
  view: Pick<View, 'read'>,
  context: Context,
) {
  const filled: PromptMessage<PromptContent>[] = []
  let [bytes, contents] = [0, 0]
  for (const { role, content } of messages) {
    for (const part of await contentsOf(content, mount, view, context)) {
      if ('resource' in part || 'bytes' in part) {
        contents++
        bytes += 'bytes' in part ? part.bytes.length : contentLength(part.resource)
      }
      if (contents > maxContents || bytes > maxEmbeddedBytes)
        throw invalid(`This prompt includes over ${maxContents} resources, or over 4 MiB of them.`, 'too-large', {
          limit: maxEmbeddedBytes,
        })
      filled.push({ role, content: part })
    }
  }
  return filled
}

/**
 * Returns the prompts that a principal may see, each with its name: its own, or if that is taken its long name, or its URI. Prompts
 * of other servers choose last, so that they take no name of a prompt of this server.
 */
function visiblePrompts(prompts: readonly Omit<MountPrompt, 'name'>[], principal: Principal): readonly MountPrompt[] {
  const names = new Map<Prompt, string>()
  const usedNames = new Set<string>()
  const isForeign = ({ prompt }: Omit<MountPrompt, 'name'>) => prompt.longName !== undefined
  for (const one of [...prompts.filter((one) => !isForeign(one)), ...prompts.filter(isForeign)]) {
    const { mount, prompt } = one
    const choices = [prompt.name, ...(prompt.longName === undefined ? [] : [prompt.longName])]
    const name = choices.find((choice) => !usedNames.has(choice)) ?? mount.uriOf(prompt.path)
    if (!mount.access(principal, prompt.path, pathsOfNames(prompt.path, [prompt.name, name]))) continue
    usedNames.add(name)
    names.set(prompt, name)
  }
  return prompts.flatMap((one) => {
    const name = names.get(one.prompt)
    return name === undefined ? [] : [{ ...one, name }]
  })
}

function isBehind({ mount, prompt }: MountPrompt, [address, path]: readonly string[]): boolean {
  if (address === undefined || path === undefined) return true
  const order = Buffer.compare(Buffer.from(mount.address.text), Buffer.from(address))
  return order > 0 || (order === 0 && comparePaths(prompt.path, path) > 0)
}

function listedOf({
  name,
  prompt: { path: _, longName: __, arguments: declared, ...given },
}: MountPrompt): ListedPrompt {
  const facts = cleanTexts(given)
  if (declared === undefined || declared.length === 0) return { ...facts, name }
  return {
    ...facts,
    name,
    arguments: declared.map(({ values: ___, from: ____, ...argument }) => cleanArgument(argument)),
  }
}

/** Cleans the texts of an argument, but not its name, which a client sends back. */
function cleanArgument({ name, ...facts }: ListedArgument): ListedArgument {
  return { name, ...cleanTexts(facts) }
}

function checkArguments(declared: readonly PromptArgument[], values: ReadonlyMap<string, string>): void {
  for (const { name, required = false } of declared)
    if (required && !values.has(name))
      throw invalid(`The argument ${JSON.stringify(name)} is missing.`, 'argument', { argument: name })
  const names = new Set(declared.map(({ name }) => name))
  for (const [name, value] of values) {
    if (!names.has(name))
      throw invalid('The request has an argument that this prompt does not have. Leave it out.', 'argument')
    if (value.length > maxArgument)
      throw invalid(`The argument ${JSON.stringify(name)} must have at most ${maxArgument} characters.`, 'argument', {
        limit: maxArgument,
      })
  }
}

function completeFrom(values: readonly string[], typed: string): Completion {
  return completeFromValues(values.filter((value) => value.toLowerCase().startsWith(typed.toLowerCase())))
}
