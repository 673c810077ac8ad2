import { invalid } from '../../core/errors.ts'
import type { PromptCompletionRequest, View } from '../../core/view.ts'
import { optionalString, type Params, requiredString, stringsIn } from './params.ts'
import type { Revision } from './revisions.ts'
import { completionToWire, promptsToWire, promptToWire } from './wire.ts'

interface Call {
  readonly params: Params
  readonly revision: Revision
  readonly signal: AbortSignal
  readonly view: View
}

type Wire = Record<string, unknown>

/** Maximum length of an argument of a prompt, in characters. */
const maxArgument = 65_536

/** The methods for prompts. For a view without prompts the list is empty. */
export const promptMethods = {
  'prompts/list': async ({ params, revision, signal, view: { prompts } }: Call): Promise<Wire> => {
    const cursor = optionalString(params, 'cursor')
    if (prompts === undefined) return { prompts: [] }
    return promptsToWire(await prompts.list(cursor === undefined ? {} : { cursor }, { signal }), revision)
  },
  'prompts/get': async ({ params, revision, signal, view: { prompts } }: Call): Promise<Wire> => {
    const name = requiredString(params, 'name')
    const given = stringsIn(params.arguments ?? {}, 'arguments', maxArgument)
    if (prompts === undefined) throw unknownPrompt()
    return promptToWire(await prompts.get({ name, arguments: given }, { signal }), revision)
  },
}

/** Completes an argument of a prompt. */
export async function completePrompt(
  { prompts }: View,
  request: PromptCompletionRequest,
  signal: AbortSignal,
): Promise<Wire> {
  if (prompts === undefined) throw unknownPrompt()
  return completionToWire(await prompts.complete(request, { signal }))
}

function unknownPrompt() {
  return invalid('There is no such prompt.', 'unknown-prompt')
}
