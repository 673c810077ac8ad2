import * as z from '../../schema/builder.ts'
import { path, secrets, service } from '../../schema/effects.ts'
import { duration, interval, secret, size, text } from '../../schema/fields.ts'
import { allowAddresses } from '../../schema/origin.ts'
import { refusal } from '../../schema/refusals.ts'
import { defineSource } from '../source.ts'

/** The most of one text that is indexed. */
const mostBytes = 16 * 2 ** 20

const url = z.string().regex(/^https?:\/\/[^\s@/]+(?:\/[^\s?#]*)?$/, {
  error: refusal(
    'This is not the URL of a service.',
    'Write one such as "http://127.0.0.1:11434", without a password.',
  ),
})

/** Settings of the embeddings service. Vectors find texts that say the same in other words. */
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
    timeout: duration
      .exactOptional()
      .describe('How long one request may take. By default "10s", and "1s" for a query.'),
    allowAddresses: allowAddresses.describe(
      'Addresses that the name in "url" may lead to though they are not on the internet, such as "10.0.0.0/8". An address in "url", and localhost, need none. By default none.',
    ),
  })
  .refine(({ openai, ollama, local }) => [openai, ollama, local].filter((one) => one !== undefined).length === 1, {
    error: refusal('This does not say where vectors come from.', 'Write one of "openai", "ollama" and "local".'),
  })
  .refine(({ local, allowAddresses }) => local === undefined || allowAddresses === undefined, {
    path: ['allowAddresses'],
    error: refusal('A model in this process is asked at no address.', 'Remove it.'),
  })

/** The options of a mount whose provider is `search`. */
export const searchShape = {
  over: z
    .union(
      [
        z.literal('*'),
        z
          .array(text.describe('The address of a mount, as it stands under "mounts".'))
          .min(1, { error: refusal('There is nothing to search.', 'Name the addresses of mounts.') }),
      ],
      { error: refusal('This does not say what is searched.', 'Write "*", or an array of the addresses of mounts.') },
    )
    .describe(
      'The addresses of the mounts that are searched, or "*" for all but searches, displays and metrics. A caller finds only resources that it may see.',
    ),
  maxBytes: size
    .refine((bytes) => bytes <= mostBytes, {
      error: refusal('This is more than can be indexed.', 'It must be at most "16MiB".'),
    })
    .exactOptional()
    .describe('How much of one text is indexed, from its beginning. By default "1MiB", at most "16MiB".'),
  maxRows: z
    .int()
    .min(1)
    .max(1_000_000)
    .exactOptional()
    .describe(
      'How many rows of each table of a database are indexed, in the order of its key. By default 10000, at most 1000000.',
    ),
  refresh: interval
    .exactOptional()
    .describe('How often a mount is listed and compared that cannot tell of changes by itself. By default "1m".'),
  embeddings: embeddings
    .exactOptional()
    .describe(
      'Where vectors come from, so that texts are found that say it in other words. By default there are none.',
    ),
}

export const source = defineSource({
  about: 'Search over other mounts.',
  shape: searchShape,
  effects: {
    options: {
      over: 'none',
      maxBytes: 'none',
      maxRows: 'none',
      refresh: 'none',
      embeddings: ({ openai, ollama, local }, context) => [
        ...(openai === undefined ? [] : [...service(openai.url), ...secrets(openai.key, context)]),
        ...(ollama === undefined ? [] : service(ollama.url)),
        // Without a folder the library downloads the model.
        ...(local === undefined
          ? []
          : local.folder === undefined
            ? service('the server that local models are downloaded from')
            : path(local.folder, context)),
      ],
    },
  },
})
