import { z } from 'zod'
import { duration, interval, secret, size, text } from '../fields.ts'
import { refusal } from '../words.ts'

/** The most of one text that is indexed. */
const mostBytes = 16 * 2 ** 20

const url = z.string().regex(/^https?:\/\/[^\s@/]+(?:\/[^\s?#]*)?$/, {
  error: refusal(
    'This is not the URL of a service.',
    'Write one such as "http://127.0.0.1:11434", without a password.',
  ),
})

/** Where vectors come from, which find what is said in other words. */
const embeddings = z
  .strictObject({
    model: text.describe(
      'The name of the model, as the service knows it. With another one, all vectors are made anew.',
    ),
    openai: z
      .strictObject({
        url: url.describe('The base of the API: "http://127.0.0.1:8080/v1".'),
        key: secret.exactOptional().describe('Where the key is: { "env": "NAME" } or { "file": "path" }.'),
      })
      .exactOptional()
      .describe('A service that speaks the API of OpenAI. What is indexed is sent to it.'),
    ollama: z
      .strictObject({ url: url.describe('Where it listens: "http://127.0.0.1:11434".') })
      .exactOptional()
      .describe('Ollama. What is indexed is sent to it.'),
    local: z
      .strictObject({
        folder: text.exactOptional().describe('The folder that models lie in. A relative path starts at this file.'),
      })
      .exactOptional()
      .describe(
        'A model in this process, by the package @huggingface/transformers, which is installed beside this one.',
      ),
    timeout: duration.exactOptional().describe('How long one request may take. By default "10s".'),
  })
  .refine(({ openai, ollama, local }) => [openai, ollama, local].filter((one) => one !== undefined).length === 1, {
    error: refusal('This does not say where vectors come from.', 'Write one of "openai", "ollama" and "local".'),
  })

/** The options of a mount whose provider is `search`. */
export const searchShape = {
  over: z
    .array(text.describe('The address of a mount, as it stands under "mounts".'))
    .min(1, { error: refusal('There is nothing to search.', 'Name the addresses of mounts.') })
    .describe('What is searched: the addresses of other mounts. Whoever searches finds only what it may see there.'),
  maxBytes: size
    .refine((bytes) => bytes <= mostBytes, {
      error: refusal('This is more than can be indexed.', 'It must be at most "16MiB".'),
    })
    .exactOptional()
    .describe('How much of one text is indexed, from its beginning. By default "1MiB", at most "16MiB".'),
  refresh: interval
    .exactOptional()
    .describe('How often a mount is listed and compared that cannot tell of changes by itself. By default "1m".'),
  embeddings: embeddings
    .exactOptional()
    .describe(
      'Where vectors come from, so that texts are found that say it in other words. By default there are none.',
    ),
}
