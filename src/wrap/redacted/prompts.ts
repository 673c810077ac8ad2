import { notFound } from '../../core/errors.ts'
import type { Prompt, PromptMessage, Prompts } from '../../core/provider.ts'
import type { Cleaner } from './cleaner.ts'
import { isSecretPath } from './facts.ts'
import { redactPhrase } from './find.ts'

/** Returns prompts with secrets removed from their descriptions and texts. Embedded resources are read, and redacted, elsewhere. */
export function cleanPrompts(prompts: Prompts, cleaner: Cleaner): Prompts {
  const cleanMessage = async (message: PromptMessage, path: string, signal: AbortSignal): Promise<PromptMessage> => {
    const { content } = message
    if (!('text' in content)) return { ...message, content: { uri: redactPhrase(content.uri) } }
    const clean = await cleaner.whole({ text: content.text }, path, signal)
    return { ...message, content: { text: 'text' in clean ? clean.text : '' } }
  }
  return {
    list: async (context) =>
      (await prompts.list(context))
        .filter(({ path, name }) => !isSecretPath(path) && !isSecretPath(name))
        .map(cleanFacts),
    get: async (request, context) => {
      if (isSecretPath(request.path)) throw notFound('a secret in the path')
      const { description, messages } = await prompts.get(request, context)
      const clean: PromptMessage[] = []
      for (const message of messages) clean.push(await cleanMessage(message, request.path, context.signal))
      return { ...(description === undefined ? {} : { description: redactPhrase(description) }), messages: clean }
    },
  }
}

function cleanFacts({ title, description, arguments: declared, ...rest }: Prompt): Prompt {
  return {
    ...rest,
    ...cleanWords({ title, description }),
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
