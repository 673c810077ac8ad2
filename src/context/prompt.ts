import { maxCompletions } from '../core/completion.ts'
import { foreignCursorError, invalid, isResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import type { Completion, PromptMessage } from '../core/provider.ts'
import type { ListedPrompt, Page, PromptContent, PromptView, View } from '../core/view.ts'
import { parseContextCall } from './asked.ts'
import { type AssembleToolOptions, abortedError, assembleName, createAssembleTurns } from './tool.ts'
import type { AssembleOptions } from './types.ts'

export interface AssemblePromptOptions extends Omit<AssembleToolOptions, 'memoryOf'>, Pick<AssembleOptions, 'memory'> {
  /** Key of the caller: callers take turns, however often each asks. */
  readonly share?: string
}

const prompt: ListedPrompt = {
  name: assembleName,
  title: 'Ask with context',
  description:
    'Asks a question together with the resources of this server that help with it, within a budget of tokens.',
  arguments: [
    { name: 'query', title: 'Question', description: 'Your question or task, in words.', required: true },
    {
      name: 'budget',
      title: 'Budget',
      description: 'Maximum number of tokens of the context, such as 16000 or 32k. By default 8k.',
    },
    {
      name: 'mounts',
      title: 'Mounts',
      description: 'The addresses of the mounts to use, separated by spaces. By default all.',
    },
  ],
}
const argumentNames: readonly string[] = (prompt.arguments ?? []).map(({ name }) => name)
const budgets = ['4k', '8k', '16k', '32k', '64k', '128k']

/** Name under which another prompt with the name of this one is available. */
const renamed = `${assembleName}_2`

/** Returns a view with one more prompt, `assemble_context`, which is listed after the others. */
export function withAssemblePrompt(view: View, options: AssemblePromptOptions = {}): View {
  const { turns = createAssembleTurns(), now = Date.now, share = '', changes, limits, memory } = options
  const { prompts: inner } = view

  const list: PromptView['list'] = async (query, call) => {
    if (inner === undefined && query?.cursor !== undefined) throw foreignCursorError()
    const page: Page<ListedPrompt> =
      inner === undefined
        ? { items: [], cache: { ttlMs: 60_000, scope: 'private' } }
        : await inner.list(query, call).catch((error: unknown) => {
            // The prompt of this module is listed even if the others do not answer.
            if (query?.cursor !== undefined || !isResourceError(error, 'unavailable')) throw error
            return { items: [], cache: { ttlMs: 0, scope: 'private' } }
          })
    const others = page.items.map((item) => (item.name === assembleName ? { ...item, name: renamed } : item))
    return { ...page, items: page.nextCursor === undefined ? [...others, prompt] : others }
  }

  const fill: PromptView['get'] = async ({ arguments: request = new Map() }, call) => {
    for (const name of request.keys())
      if (!argumentNames.includes(name))
        throw invalid(
          `The request has an argument that this prompt does not have. The arguments are: ${argumentNames.join(', ')}.`,
          'argument',
        )
    const query = request.get('query')?.trim() ?? ''
    if (query === '') throw invalid('The argument "query" is missing.', 'argument', { argument: 'query' })
    const [budget, mounts] = [request.get('budget')?.trim(), splitList(request.get('mounts'))]
    const contextCall = parseContextCall(
      {
        query,
        format: 'mcp',
        ...(budget === undefined || budget === '' ? {} : { budget }),
        ...(mounts.length === 0 ? {} : { mounts }),
      },
      now,
    )
    const signal = call?.signal
    try {
      return await turns.run(share, signal, async () => {
        const [{ assemble }, { toOutputBlocks }] = await Promise.all([import('./assemble.ts'), import('./render.ts')])
        const { blocks = [] } = await assemble(view, {
          ...contextCall.options,
          ...defined({ signal, changes, limits, memory }),
        })
        const messages = toOutputBlocks(blocks).map(
          (content): PromptMessage<PromptContent> => ({ role: 'user', content }),
        )
        const question: PromptMessage<PromptContent> = { role: 'user', content: { text: query } }
        return { description: `Resources that help with: ${query.slice(0, 200)}`, messages: [...messages, question] }
      })
    } catch (error) {
      if (signal?.aborted === true) throw abortedError()
      if (isResourceError(error, 'not-found')) throw invalid(error.message, 'argument')
      throw error
    }
  }

  const complete: PromptView['complete'] = async ({ argument: { name, value } }, call) => {
    if (name === 'budget') return completionOf(budgets.filter((budget) => budget.startsWith(value.trim())))
    if (name !== 'mounts') return { values: [] }
    const [, before = '', typed = ''] = /^(.*[\s,])?([^\s,]*)$/s.exec(value) ?? []
    const typedAddresses = new Set(splitList(before))
    const addresses = (await view.mounts(call)).map(({ uri }) => uri.replace(/\/$/, ''))
    const matches = addresses.filter((address) => address.startsWith(typed) && !typedAddresses.has(address))
    return completionOf(matches.map((address) => before + address))
  }

  const prompts: PromptView = {
    ...inner,
    list,
    get: async (request, call) =>
      request.name === assembleName ? fill(request, call) : required(inner).get(restorePromptName(request), call),
    complete: async (request, call) =>
      request.name === assembleName
        ? complete(request, call)
        : required(inner).complete(restorePromptName(request), call),
  }
  return { ...view, prompts }
}

function required(inner: PromptView | undefined): PromptView {
  if (inner === undefined) throw invalid('There is no such prompt.', 'unknown-name')
  return inner
}

function restorePromptName<Request extends { readonly name: string }>(request: Request): Request {
  return request.name === renamed ? { ...request, name: assembleName } : request
}

function splitList(text = ''): readonly string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '')
}

function completionOf(values: readonly string[]): Completion {
  return { values: values.slice(0, maxCompletions), total: values.length, hasMore: values.length > maxCompletions }
}
