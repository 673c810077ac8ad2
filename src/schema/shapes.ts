import { resolve } from 'node:path'
import { addressBlock, isHttpUrl } from '../core/http-url.ts'
import { isPath } from '../core/path.ts'
import { encodingLabel } from '../text/encoding/decode.ts'
import { languageOf } from '../text/encoding/detect.ts'
import * as z from './builder.ts'
import { count, duration, durationFrom, globs, size, sizeUpTo, text } from './fields.ts'
import { refusal } from './refusals.ts'
import { leadsOut, resolveConfigPath, secretSourcesIn } from './values.ts'

/**
 * Something that a configuration makes hikidashi do beyond reading the folder that it lies in. A configuration needs
 * trust for it.
 * - `starts`: it starts a program.
 * - `runs`: it runs the code of a module, which is a source.
 * - `reads`: it reads something outside the folder of the configuration.
 * - `writes`: it writes a file that the configuration names.
 * - `sends`: it connects to something, on this machine or elsewhere.
 * - `admits`: it lets other users send requests.
 * - `needs`: it depends on a part of the configuration that was left out.
 */
export interface Effect {
  readonly kind: 'starts' | 'runs' | 'reads' | 'writes' | 'sends' | 'admits' | 'needs'
  /** The program, path, address or part, as the configuration writes it. Escape it before it is shown. */
  readonly what: string
}

/**
 * The folder of a configuration, and the address of the mount whose options are checked. For other settings the address
 * is empty.
 */
export interface EffectContext {
  readonly folder: string
  readonly address: string
}

/** Returns the effects of the value of an option. `none`: the option has no effect, whatever its value. */
type Rule<Value> = 'none' | ((value: Value, context: EffectContext) => readonly Effect[])

/**
 * One rule for each key of an object. A key without one is a type error, and fails test/unit/config-effects.test.ts.
 */
export type EffectRules<Values> = { readonly [Key in keyof Values]-?: Rule<NonNullable<Values[Key]>> }

type Names<Text extends string> = Text extends `${infer Name} ${infer Rest}` ? Name | Names<Rest> : Text

/** @param names The names of options, separated by single spaces. */
export function withoutEffects<const Text extends string>(names: Text): Readonly<Record<Names<Text>, 'none'>> {
  return Object.fromEntries(names.split(' ').map((name) => [name, 'none'])) as Record<Names<Text>, 'none'>
}

/** Fails closed: a key without a rule counts as one that starts a program. */
export function effectsBy<Values extends object>(
  rules: EffectRules<Values>,
  values: Values,
  context: EffectContext,
): readonly Effect[] {
  const rulesByName: Readonly<Record<string, Rule<unknown>>> = rules as Readonly<Record<string, Rule<unknown>>>
  return Object.entries(values).flatMap(([key, value]) => {
    if (value === undefined) return []
    const rule = Object.hasOwn(rulesByName, key) ? rulesByName[key] : undefined
    if (rule === undefined) return [{ kind: 'starts' as const, what: key }]
    return rule === 'none' ? [] : rule(value, context)
  })
}

/** A path that is read has an effect if it leads out of the folder of the configuration, by its name or by a link. */
export function pathEffects(value: string, { folder }: EffectContext): readonly Effect[] {
  return leadsOut(resolveConfigPath(value, folder), folder) ? [{ kind: 'reads', what: value }] : []
}

export function pathsEffects(values: readonly string[], context: EffectContext): readonly Effect[] {
  return values.flatMap((value) => pathEffects(value, context))
}

/** A secret, at any depth of the value, has an effect if it is in a file outside the folder of the configuration. */
export function secretEffects(value: unknown, { folder }: EffectContext): readonly Effect[] {
  return secretSourcesIn(value).flatMap((source) => {
    if ('env' in source) return []
    return leadsOut(resolve(folder, source.file), folder) ? [{ kind: 'reads' as const, what: source.file }] : []
  })
}

export function programEffects(value: string): readonly Effect[] {
  return [{ kind: 'starts', what: value }]
}

export function serviceEffects(value: string): readonly Effect[] {
  return [{ kind: 'sends', what: value }]
}

/** Returns the rule for a switch that lets a source reach beyond its folder. */
export function effectIfOn(what: string): (value: boolean) => readonly Effect[] {
  return (value) => (value ? [{ kind: 'reads', what }] : [])
}

const tag = /^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/

const language = text.refine((language) => tag.test(language) && languageOf(language) !== undefined, {
  error: refusal(
    'No encodings are known for this language.',
    'Write "ja", "zh", "ko", or a language of Western Europe such as "en", "de" or "fr"; or remove the key.',
  ),
})

/** Keys for language and encoding, shared by providers that decode texts. */
export const encodingShape = {
  language: z
    .union([language, z.array(language).min(1)], {
      error: refusal('This is not a language.', 'Write one such as "ja", or an array: ["ja", "de"].'),
    })
    .optionalKey(
      'The language of most texts, such as "ja", "zh", "ko" or "de", or an array of several. It decides the encoding of a text whose bytes fit several encodings.',
    ),
  encodings: z
    .array(
      z.strictObject({
        match: globs.describe('Globs of the files of the rule. If several rules match a file, the last one applies.'),
        encoding: text
          .refine((label) => label === 'binary' || encodingLabel(label) !== undefined, {
            error: refusal(
              'This encoding is unknown.',
              'Write a label of the WHATWG Encoding Standard, such as "shift_jis", "euc-jp" or "windows-1252", or "binary".',
            ),
          })
          .describe('The encoding, such as "shift_jis" or "windows-1252"; "binary" leaves the bytes unchanged.'),
      }),
    )
    .optionalKey(
      'Encodings of files, by glob, in place of the detected ones. A text in UTF-8 stays UTF-8, except with "binary" and "iso-2022-jp".',
    ),
}

/** The path of a directory in a mount, without a final `/`. The root is invalid. */
const skillPath = text.refine((path) => isPath(path) && path !== '' && !path.endsWith('/'), {
  error: refusal(
    'This is not the path of a directory in the mount.',
    'Write one such as ".claude/skills", without a / at its ends.',
  ),
})

const ocrLanguage = text.regex(/^(?:script\/)?[A-Za-z][A-Za-z0-9_]{0,63}$/, {
  error: refusal(
    'This is not a language of tesseract.',
    'Write one that "tesseract --list-langs" prints, such as "eng" or "jpn".',
  ),
})

/** Keys for reading files as documents, shared by providers that serve files. */
export const documentsShape = {
  ...encodingShape,
  frontMatter: globs.optionalKey(
    'Globs of the documents whose front matter gives title, description, priority and audience. It overrides the rules. Listing such documents reads the beginning of each. By default none.',
  ),
  languages: z
    .array(
      text.regex(tag, {
        error: refusal('This is not a language.', 'Write one as it stands in paths, such as "ja" or "zh-cn".'),
      }),
    )
    .optionalKey(
      'The languages in the paths of documents, such as "ja" for docs/ja/a.md. A read then names the same document in the other languages.',
    ),
  skills: z
    .union([z.boolean(), skillPath, z.array(skillPath).min(1)], {
      error: refusal(
        'This is not a setting for skills.',
        'Write true, or a path in the mount such as ".claude/skills".',
      ),
    })
    .optionalKey(
      'Serves the directories with a SKILL.md as skills: in the whole mount (true), or below these paths. By default none.',
    ),
  readings: z
    .union(
      [
        z.boolean(),
        z.strictObject({
          maxBytes: size.optionalKey('Maximum size of a document that is read as text. By default "32MiB".'),
          timeout: duration.optionalKey('Time-out for reading one document. By default "20s".'),
          ocr: z
            .strictObject({
              languages: z
                .array(ocrLanguage)
                .min(1)
                .describe('The languages of the scans, as tesseract names them: "eng", "jpn", "chi_sim".'),
              maxPages: count.optionalKey('Maximum number of pages of one document that OCR reads. By default 100.'),
              timeout: duration.optionalKey(
                'Time-out for OCR of one document: later pages are not read. By default "10m".',
              ),
            })
            .optionalKey(
              'Reads PDF pages that hold only pictures or unreadable text with tesseract, in the background. By default they are not read.',
            ),
        }),
      ],
      {
        error: refusal('This is not a setting for documents as text.', 'Write true, false or { "maxBytes": "32MiB" }.'),
      },
    )
    .optionalKey('Serves PDF, office documents, books, mails and HTML also as text, at ?as=text. By default true.'),
  redact: z
    .enum(['mask', 'withhold', 'off'])
    .optionalKey(
      'Looks for secrets in contents: "mask" replaces each by [redacted], "withhold" refuses to show a content that contains one. By default "off".',
    ),
}

/** Of the keys for documents, only OCR has an effect, since it starts a program. */
export const documentEffectRules = {
  ...withoutEffects('language encodings frontMatter languages redact skills'),
  readings: (value: boolean | { readonly ocr?: object | undefined }) =>
    typeof value === 'object' && value.ocr !== undefined ? programEffects('tesseract') : [],
} as const

export const httpUrl = text.refine(isHttpUrl, {
  error: refusal(
    'This is not an http or https URL.',
    'Write one such as "https://www.example.org/docs", without a name and password, a query or a fragment.',
  ),
})

export const allowAddresses = z
  .array(
    text.refine((block) => addressBlock(block) !== undefined, {
      error: refusal(
        'This is not an IP address or a block of addresses.',
        'Write one such as "10.0.0.5", or a block such as "10.0.0.0/8" or "fd00::/8".',
      ),
    }),
  )
  .optionalKey(
    'Addresses that may be reached although they are not on the internet: of this machine ("127.0.0.1"), of a private network ("10.0.0.0/8"). By default none.',
  )

/** Keys for access to a web server, shared by several providers. */
export const webAccessShape = {
  redirects: z
    .array(httpUrl)
    .optionalKey(
      'Other origins that redirects may lead to, such as "https://www.example.org". They get no credentials. By default none.',
    ),
  allowAddresses,
  insecure: z
    .boolean()
    .optionalKey(
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
  maxBytes: sizeUpTo('64MiB').optionalKey(
    'Maximum size of an answer, decompressed. By default "8MiB", at most "64MiB".',
  ),
  timeout: durationFrom('100ms', '10m').optionalKey(
    'Time-out of one answer, with all redirects and the whole body. By default "20s".',
  ),
}

/** The keys have no effect besides the access itself. */
export const webAccessEffectRules = {
  ...withoutEffects('redirects allowAddresses insecure types maxBytes timeout'),
} as const
