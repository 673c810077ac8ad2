import { notFound } from '../../core/errors.ts'
import type { Prompt, PromptMessage, PromptPart, Prompts } from '../../core/provider.ts'
import { redactPhrase } from '../../secrets/find.ts'
import type { Cleaner } from './cleaner.ts'
import { cleanCompletion, cleanEntry, cleanMeta, isSecretPath, type Seal } from './facts.ts'

/** Returns prompts with secrets removed from their descriptions and texts. Embedded resources are read, and redacted, elsewhere. */
export function cleanPrompts(prompts: Prompts, cleaner: Cleaner, seal: Seal): Prompts {
  /** Returns undefined for a part with a secret in its path. */
  const cleanPart = async (part: PromptPart, path: string, signal: AbortSignal): Promise<PromptPart | undefined> => {
    if ('uri' in part) return { uri: redactPhrase(part.uri) }
    if ('entry' in part) return isSecretPath(part.entry.path) ? undefined : { entry: cleanEntry(part.entry, seal) }
    if ('content' in part) {
      const { content } = part
      if (isSecretPath(content.path)) return undefined
      return { content: { ...(await cleaner.whole(content, content.path, signal)), path: content.path } }
    }
    const clean = await cleaner.whole(part, path, signal)
    if ('text' in part || !('bytes' in clean)) return { text: 'text' in clean ? clean.text : '' }
    return { bytes: clean.bytes, mimeType: part.mimeType }
  }
  const { complete } = prompts
  return {
    ...prompts,
    ...(complete === undefined
      ? {}
      : { complete: async (request, context) => cleanCompletion(await complete(request, context)) }),
    list: async (context) =>
      (await prompts.list(context))
        .filter(({ path, name }) => !isSecretPath(path) && !isSecretPath(name))
        .map(cleanFacts),
    get: async (request, context) => {
      if (isSecretPath(request.path)) throw notFound('a secret in the path')
      const { description, messages } = await prompts.get(request, context)
      const clean: PromptMessage[] = []
      for (const { role, content } of messages) {
        const part = await cleanPart(content, request.path, context.signal)
        if (part !== undefined) clean.push({ role, content: part })
      }
      return { ...(description === undefined ? {} : { description: redactPhrase(description) }), messages: clean }
    },
  }
}

function cleanFacts({ title, description, meta, arguments: declared, ...rest }: Prompt): Prompt {
  return {
    ...rest,
    ...cleanWords({ title, description }),
    ...cleanMeta(meta),
    ...(declared === undefined
      ? {}
      : {
          arguments: declared.map(({ title, description, values, ...argument }) => ({
            ...argument,
            ...cleanWords({ title, description }),
            ...(values === undefined ? {} : { values: values.filter((value) => redactPhrase(value) === value) }),
          })),
        }),
  }
}

function cleanWords({ title, description }: { title: string | undefined; description: string | undefined }) {
  return {
    ...(title === undefined ? {} : { title: redactPhrase(title) }),
    ...(description === undefined ? {} : { description: redactPhrase(description) }),
  }
}
