import { isPath } from '../core/path.ts'
import { labelOf } from '../text/encoding/decode.ts'
import { languageOf } from '../text/encoding/judge.ts'
import * as z from './builder.ts'
import { duration, globs, size, text } from './fields.ts'
import { refusal } from './refusals.ts'

const tag = /^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/

const language = text.refine((language) => tag.test(language) && languageOf(language) !== undefined, {
  error: refusal(
    'This is no language that tells encodings apart.',
    'Write "ja", "zh", "ko", or one of Western Europe such as "en", "de" or "fr"; or remove the key.',
  ),
})

/** Keys for language and encoding of texts, shared by all providers that decode texts. */
export const encodingShape = {
  language: z
    .union([language, z.array(language).min(1)], {
      error: refusal('This does not say a language.', 'Write one such as "ja", or an array: ["ja", "de"].'),
    })
    .exactOptional()
    .describe(
      'What most texts are written in, such as "ja", "zh", "ko" or "de", or an array of several: it decides where their bytes leave the encoding open.',
    ),
  encodings: z
    .array(
      z.strictObject({
        match: globs.describe('The files that the rule is about. Of several rules for a file, the last one holds.'),
        encoding: text
          .refine((label) => label === 'binary' || labelOf(label) !== undefined, {
            error: refusal(
              'There is no such encoding.',
              'Write a label of the WHATWG Encoding Standard, such as "shift_jis", "euc-jp" or "windows-1252", or "binary".',
            ),
          })
          .describe('Their encoding, such as "shift_jis" or "windows-1252"; "binary" leaves their bytes as they are.'),
      }),
    )
    .exactOptional()
    .describe(
      'Encodings that are not found by themselves, by glob. What is UTF-8 is read as that, whatever is said here.',
    ),
}

/** A directory of a mount, by its path. */
const skillPath = text.refine((path) => isPath(path) && path !== '' && !path.endsWith('/'), {
  error: refusal(
    'This is no path of a directory in the mount.',
    'Write one such as ".claude/skills", without a / at its ends.',
  ),
})

/** Keys for reading files as documents, shared by all providers that serve files. */
export const documentsShape = {
  ...encodingShape,
  frontMatter: globs
    .exactOptional()
    .describe(
      'The documents whose front matter gives title, description, priority and audience, before any rule does. Listing them reads the beginning of each. By default none.',
    ),
  languages: z
    .array(
      text.regex(tag, {
        error: refusal('This is not a language.', 'Write one as it stands in paths, such as "ja" or "zh-cn".'),
      }),
    )
    .exactOptional()
    .describe(
      'The languages that documents are told apart by, as they stand in paths: what is read names the same document in the others.',
    ),
  skills: z
    .union([z.boolean(), skillPath, z.array(skillPath).min(1)], {
      error: refusal(
        'This does not say where skills are.',
        'Write true, or a path in the mount such as ".claude/skills".',
      ),
    })
    .exactOptional()
    .describe(
      'Serves the directories with a SKILL.md as skills: in all of the mount (true), or below paths in it. By default none.',
    ),
  readings: z
    .union(
      [
        z.boolean(),
        z.strictObject({
          maxBytes: size.exactOptional().describe('The largest document that is read as text. By default "32MiB".'),
          timeout: duration.exactOptional().describe('How long reading one may take. By default "20s".'),
        }),
      ],
      {
        error: refusal(
          'This does not say how documents are read as text.',
          'Write true, false or { "maxBytes": "32MiB" }.',
        ),
      },
    )
    .exactOptional()
    .describe('Reads PDF, Word, Excel, PowerPoint and HTML documents as text, at ?as=text. By default true.'),
  redact: z
    .enum(['mask', 'withhold', 'off'])
    .exactOptional()
    .describe(
      'Looks for secrets in everything that is shown: "mask" puts [redacted] in the place of each, "withhold" shows nothing of a file that holds one. By default "off".',
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
