import { addressBlock, isHttpUrl } from '../core/http-url.ts'
import { isPath } from '../core/path.ts'
import { labelOf } from '../text/encoding/decode.ts'
import { languageOf } from '../text/encoding/detect.ts'
import * as z from './builder.ts'
import { duration, globs, size, text } from './fields.ts'
import { refusal } from './refusals.ts'

const tag = /^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/

const language = text.refine((language) => tag.test(language) && languageOf(language) !== undefined, {
  error: refusal(
    'No encoding can be chosen by this language.',
    'Write "ja", "zh", "ko", or one of Western Europe such as "en", "de" or "fr"; or remove the key.',
  ),
})

/** Keys for language and encoding of texts, shared by all providers that decode texts. */
export const encodingShape = {
  language: z
    .union([language, z.array(language).min(1)], {
      error: refusal('This is not a language.', 'Write one such as "ja", or an array: ["ja", "de"].'),
    })
    .exactOptional()
    .describe(
      'The language of most texts, such as "ja", "zh", "ko" or "de", or an array of several. It decides the encoding of a text whose bytes fit several encodings.',
    ),
  encodings: z
    .array(
      z.strictObject({
        match: globs.describe('Globs of the files of the rule. If several rules match a file, the last one applies.'),
        encoding: text
          .refine((label) => label === 'binary' || labelOf(label) !== undefined, {
            error: refusal(
              'There is no such encoding.',
              'Write a label of the WHATWG Encoding Standard, such as "shift_jis", "euc-jp" or "windows-1252", or "binary".',
            ),
          })
          .describe('The encoding, such as "shift_jis" or "windows-1252"; "binary" leaves the bytes unchanged.'),
      }),
    )
    .exactOptional()
    .describe('Encodings that are not detected, by glob. A text in UTF-8 is always read as UTF-8.'),
}

/** A directory of a mount, by its path. */
const skillPath = text.refine((path) => isPath(path) && path !== '' && !path.endsWith('/'), {
  error: refusal(
    'This is not the path of a directory in the mount.',
    'Write one such as ".claude/skills", without a / at its ends.',
  ),
})

/** Keys for reading files as documents, shared by all providers that serve files. */
export const documentsShape = {
  ...encodingShape,
  frontMatter: globs
    .exactOptional()
    .describe(
      'Globs of the documents whose front matter gives title, description, priority and audience. It overrides the rules. Listing such documents reads the beginning of each. By default none.',
    ),
  languages: z
    .array(
      text.regex(tag, {
        error: refusal('This is not a language.', 'Write one as it stands in paths, such as "ja" or "zh-cn".'),
      }),
    )
    .exactOptional()
    .describe(
      'The languages in the paths of documents, such as "ja" for docs/ja/a.md. A read then names the same document in the other languages.',
    ),
  skills: z
    .union([z.boolean(), skillPath, z.array(skillPath).min(1)], {
      error: refusal('This is not a place of skills.', 'Write true, or a path in the mount such as ".claude/skills".'),
    })
    .exactOptional()
    .describe(
      'Serves the directories with a SKILL.md as skills: in the whole mount (true), or below these paths. By default none.',
    ),
  readings: z
    .union(
      [
        z.boolean(),
        z.strictObject({
          maxBytes: size.exactOptional().describe('The largest document that is read as text. By default "32MiB".'),
          timeout: duration.exactOptional().describe('Time-out for reading one document. By default "20s".'),
        }),
      ],
      {
        error: refusal('This is not a setting for documents as text.', 'Write true, false or { "maxBytes": "32MiB" }.'),
      },
    )
    .exactOptional()
    .describe('Reads PDF, Word, Excel, PowerPoint and HTML documents as text, at ?as=text. By default true.'),
  redact: z
    .enum(['mask', 'withhold', 'off'])
    .exactOptional()
    .describe(
      'Looks for secrets in contents: "mask" replaces each by [redacted], "withhold" refuses to show a file that contains one. By default "off".',
    ),
}

/** No key for reading files as documents has an effect (`schema/effects.ts`). */
export const documentEffects = {
  language: 'none',
  encodings: 'none',
  frontMatter: 'none',
  languages: 'none',
  readings: 'none',
  redact: 'none',
  skills: 'none',
} as const

export const httpUrl = text.refine(isHttpUrl, {
  error: refusal(
    'This is not an address of the web.',
    'Write one such as "https://www.example.org/docs", without a name and password, a query or a fragment.',
  ),
})

export const allowAddresses = z
  .array(
    text.refine((block) => addressBlock(block) !== undefined, {
      error: refusal(
        'This is not an address.',
        'Write one such as "10.0.0.5", or a block such as "10.0.0.0/8" or "fd00::/8".',
      ),
    }),
  )
  .exactOptional()
  .describe(
    'Addresses that may be reached although they are not on the internet: of this machine ("127.0.0.1"), of a private network ("10.0.0.0/8"). By default none.',
  )

/** Keys for access to a web server, shared by all providers that have one. */
export const originShape = {
  redirects: z
    .array(httpUrl)
    .exactOptional()
    .describe(
      'Other origins that redirects may lead to, such as "https://www.example.org". They get no credentials. By default none.',
    ),
  allowAddresses,
  insecure: z
    .boolean()
    .exactOptional()
    .describe(
      'Allows http:// to other machines. Anybody on the network path can then read and change the contents. By default false.',
    ),
  types: z
    .array(
      text.regex(/^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+$/, {
        error: refusal('This is not a media type.', 'Write one such as "text/html", or a glob such as "text/*".'),
      }),
    )
    .min(1)
    .exactOptional(),
  maxBytes: size
    .refine((bytes) => bytes >= 1 && bytes <= 64 * 2 ** 20, {
      error: refusal('This is more than can be read at once, or nothing.', 'It must be at most "64MiB".'),
    })
    .exactOptional()
    .describe('Maximum size of an answer, decompressed. By default "8MiB", at most "64MiB".'),
  timeout: duration
    .refine((ms) => ms >= 100 && ms <= 600_000, {
      error: refusal('This is too short or too long.', 'It must be from "100ms" to "10m".'),
    })
    .exactOptional()
    .describe('Time-out of one answer, with all redirects and the whole body. By default "20s".'),
}

/** None of these keys has an effect (`schema/effects.ts`) besides that of the access itself. */
export const originEffects = {
  redirects: 'none',
  allowAddresses: 'none',
  insecure: 'none',
  types: 'none',
  maxBytes: 'none',
  timeout: 'none',
} as const
