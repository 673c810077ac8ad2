import * as z from '../../schema/builder.ts'
import { count, duration, size, text } from '../../schema/fields.ts'
import { refusal } from '../../schema/refusals.ts'
import { defineSource } from '../source.ts'

/** The largest analysis that may be kept, in bytes. */
const mostBytes = 8 * 2 ** 20

const aSecond = duration.refine((ms) => ms >= 1000, {
  error: refusal('This is less than a second.', 'It must be at least "1s".'),
})

/** The options of a mount whose provider is `results`. */
export const resultsShape = {
  collection: text
    .max(100)
    .exactOptional()
    .describe(
      'What tells these results from others in the same store. Two mounts of one collection show the same. By default the address.',
    ),
  ttl: aSecond
    .exactOptional()
    .describe('For how long a result is kept that does not say when it expires. By default "30d".'),
  keep: z
    .strictObject({
      records: count.exactOptional().describe('How many results. By default 10000.'),
      bytes: size.exactOptional().describe('How long all of them may be together. By default "256MiB".'),
      age: aSecond.exactOptional().describe('How old one may become, whenever it expires. By default any age.'),
    })
    .exactOptional()
    .describe('How much is kept at most: what has expired goes first, then what is oldest.'),
  maxBytes: size
    .refine((bytes) => bytes <= mostBytes, {
      error: refusal('This is more than a result may have.', 'It must be at most "8MiB".'),
    })
    .exactOptional()
    .describe('The largest result. By default "1MiB", at most "8MiB".'),
  language: z
    .string()
    .regex(/^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/, {
      error: refusal('This is not a language.', 'Write one such as "ja" or "en".'),
    })
    .exactOptional()
    .describe('The language of a result that does not name its own, and so of its report. By default "en".'),
  write: z
    .array(text.describe('The name of a role; "*" is everybody.'))
    .min(1, {
      error: refusal('The list is empty.', 'Name the roles that may write, or remove the key to let nobody.'),
    })
    .exactOptional()
    .describe(
      'The roles that may write results: with the tool `save_analysis`, and over HTTP by POST to /results/NAME, where NAME is the address without its scheme. A role that cannot see the mount cannot write to it either. By default nobody: there is neither the tool nor the POST.',
    ),
  redact: z
    .enum(['mask', 'withhold', 'off'])
    .exactOptional()
    .describe(
      'Looks for secrets in everything that is shown: "mask" puts [redacted] in the place of each, "withhold" shows nothing of a result that holds one. By default "off".',
    ),
}

export const source = defineSource({
  about: 'Cached results of wall-bounce analyses.',
  shape: resultsShape,
  effects: {
    options: {
      collection: 'none',
      ttl: 'none',
      keep: 'none',
      maxBytes: 'none',
      language: 'none',
      write: 'none',
      redact: 'none',
    },
  },
})
