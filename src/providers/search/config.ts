import * as z from '../../schema/builder.ts'
import { duration, interval, secret, sizeUpTo, text } from '../../schema/fields.ts'
import { refusal } from '../../schema/refusals.ts'
import { allowAddresses, pathEffects, secretEffects, serviceEffects, withoutEffects } from '../../schema/shapes.ts'
import { defineSourceSchema } from '../source.ts'

const url = z.string().regex(/^https?:\/\/[^\s@/]+(?:\/[^\s?#]*)?$/, {
  error: refusal(
    'This is not the URL of a service.',
    'Write one such as "http://127.0.0.1:11434", without a password, a query or a fragment.',
  ),
})

const embeddings = z
  .strictObject({
    model: text.describe('The name of the model at the service. If you change it, all vectors are computed again.'),
    openai: z
      .strictObject({
        url: url.describe('The base URL of the API, such as "http://127.0.0.1:8080/v1".'),
        key: secret.optionalKey('The key of the API, as { "env": "NAME" } or { "file": "path" }.'),
      })
      .optionalKey('A service with the API of OpenAI. Indexed texts are sent to it.'),
    ollama: z
      .strictObject({ url: url.describe('The URL of Ollama, such as "http://127.0.0.1:11434".') })
      .optionalKey('A service of Ollama. Indexed texts are sent to it.'),
    local: z
      .strictObject({
        folder: text.optionalKey('The folder of the models. A relative path starts at the configuration file.'),
      })
      .optionalKey(
        'A model in this process, by the package @huggingface/transformers, which you install beside hikidashi.',
      ),
    weight: z
      .number()
      .min(0)
      .max(1)
      .optionalKey(
        'Weight of the ranking by vectors beside the ranking by words, from 0 to 1. By default 0.3. Raise the weight if a measurement with your texts shows that the model ranks better.',
      ),
    timeout: duration.optionalKey('Time-out of one request. By default "10s", and "1s" for a query.'),
    allowAddresses: allowAddresses.describe(
      'Addresses outside the internet to which the name in "url" may lead, such as "10.0.0.0/8". An IP address in "url" and localhost are always allowed. By default none.',
    ),
  })
  .refine(({ openai, ollama, local }) => [openai, ollama, local].filter((one) => one !== undefined).length === 1, {
    error: refusal('"embeddings" must have one source of vectors.', 'Write one of "openai", "ollama" and "local".'),
  })
  .refine(({ local, allowAddresses }) => local === undefined || allowAddresses === undefined, {
    path: ['allowAddresses'],
    error: refusal('A local model needs no addresses.', 'Remove it.'),
  })

const searchShape = {
  over: z
    .union(
      [
        z.literal('*'),
        z
          .array(text.describe('The address of a mount, as under "mounts".'))
          .min(1, { error: refusal('The list is empty.', 'Name the addresses of mounts.') }),
      ],
      { error: refusal('This is not a list of mounts.', 'Write "*", or an array of the addresses of mounts.') },
    )
    .describe(
      'The addresses of the mounts that are searched, or "*" for all but searches, displays and metrics. A caller finds only resources that it may see.',
    ),
  maxBytes: sizeUpTo('16MiB', 'The size is larger than can be indexed.').optionalKey(
    'Maximum number of bytes of a text that are indexed: its beginning, or the end of a log. By default "8MiB", at most "16MiB".',
  ),
  maxRows: z
    .int()
    .min(1)
    .max(1_000_000)
    .optionalKey(
      'How many rows of each table of a database are indexed, in the order of its key. By default 10000, at most 1000000.',
    ),
  refresh: interval.optionalKey(
    'Interval at which a mount that cannot report changes is listed and compared. By default "1m".',
  ),
  embeddings: embeddings.optionalKey(
    'The service or model that makes vectors, with which a query also finds texts in other words. By default there are no vectors.',
  ),
}

export const source = defineSourceSchema({
  about: 'Search over other mounts.',
  shape: searchShape,
  effects: {
    options: {
      ...withoutEffects('over maxBytes maxRows refresh'),
      embeddings: ({ openai, ollama, local }, context) => [
        ...(openai === undefined ? [] : [...serviceEffects(openai.url), ...secretEffects(openai.key, context)]),
        ...(ollama === undefined ? [] : serviceEffects(ollama.url)),
        // Without a folder the library downloads the model.
        ...(local === undefined
          ? []
          : local.folder === undefined
            ? serviceEffects('the server that local models are downloaded from')
            : pathEffects(local.folder, context)),
      ],
    },
  },
})
