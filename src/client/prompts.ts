import { defined } from '../core/kit/defined.ts'
import type { FilledPrompt, PromptMessage } from '../core/provider.ts'
import type { ListedArgument, ListedPrompt, Page, PromptContent } from '../core/view.ts'
import {
  cacheOf,
  contentsOf,
  decodeBase64,
  descriptionOf,
  listOf,
  malformed,
  metaOf,
  objectOf,
  resourcesOf,
  textOf,
  type Wire,
} from './wire.ts'

/** @throws ResourceError `internal` for an answer without prompts. */
export function promptPageOf(answer: Wire): Omit<Page<ListedPrompt>, 'nextCursor'> {
  const items = listOf(answer, 'prompts').flatMap((item): readonly ListedPrompt[] => {
    const wire = objectOf(item)
    const name = textOf(wire.name)
    // A prompt without a name cannot be requested.
    if (name === undefined) return []
    const { title, description, icons } = descriptionOf(wire)
    const meta = metaOf(wire)
    const declared = Array.isArray(wire.arguments) ? wire.arguments.flatMap(argumentsOf) : []
    return [
      {
        name,
        ...defined({ title, description, icons, meta }),
        ...(declared.length > 0 ? { arguments: declared } : {}),
      },
    ]
  })
  return { items, cache: cacheOf(answer) }
}

function argumentsOf(item: unknown): readonly ListedArgument[] {
  const wire = objectOf(item)
  const name = textOf(wire.name)
  if (name === undefined) return []
  const { title, description } = descriptionOf(wire)
  const required = typeof wire.required === 'boolean' ? wire.required : undefined
  return [{ name, ...defined({ title, description, required }) }]
}

/** @throws ResourceError `internal` for an answer without messages, or with a content of an unknown type. */
export function filledPromptOf(answer: Wire, decode = decodeBase64): FilledPrompt<PromptContent> {
  const description = textOf(answer.description)
  const messages = listOf(answer, 'messages').map((item): PromptMessage<PromptContent> => {
    const { role, content } = objectOf(item)
    return { role: role === 'assistant' ? 'assistant' : 'user', content: promptContentOf(objectOf(content), decode) }
  })
  return { ...defined({ description }), messages }
}

/** @throws ResourceError `internal` for a content of an unknown type. */
function promptContentOf(wire: Wire, decode: typeof decodeBase64): PromptContent {
  const block = blockOf(wire, decode)
  if (block === undefined) throw malformed('a message of a prompt has no content')
  return block
}

/** Returns the content of a block; undefined for one of an unknown type. */
export function blockOf(wire: Wire, decode = decodeBase64): PromptContent | undefined {
  const { type, text, data, mimeType } = wire
  if (type === 'text' && typeof text === 'string') return { text: text.toWellFormed() }
  if ((type === 'image' || type === 'audio') && typeof data === 'string')
    return { bytes: decode(data), mimeType: textOf(mimeType) ?? `${type}/*` }
  const [resource] = type === 'resource' ? contentsOf({ contents: [wire.resource] }, '', decode) : []
  if (resource !== undefined) return { resource }
  const [link] = type === 'resource_link' ? resourcesOf([wire]) : []
  return link === undefined ? undefined : { link }
}
