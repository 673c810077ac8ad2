import { completeFromValues } from '../core/completion.ts'
import { defined } from '../core/kit/object.ts'
import type { Completion, CompletionRequest, Content, Provider, Template } from '../core/provider.ts'
import { documentFormatOf, readingFormsOf } from '../readings/formats.ts'
import type { EncodingRule } from '../text/encoding/detect.ts'
import { decoded } from './decoded.ts'
import { type DocumentedOptions, documented } from './documented.ts'
import { maxTailLines, type TailFacts, tailIn, tailKey, withoutPosition } from './part.ts'
import { type ReadableOptions, readable } from './readable.ts'
import { type SlicedOptions, sliced } from './sliced.ts'
import { type TailedOptions, tailed } from './tailed.ts'

export interface DocumentsOptions extends DocumentedOptions {
  /** Language of most texts, as one or more language tags (`ja`, `zh-TW`, `de`). It decides when the bytes are ambiguous. */
  readonly language?: string | readonly string[]
  /** Encodings of files, which take precedence over detection. */
  readonly encodings?: readonly EncodingRule[]
  /** The largest text in another encoding than UTF-8 that is decoded, in bytes. Default 64 MiB. */
  readonly maxDecodedBytes?: number
  /** Settings for reading documents as text; `false`: off. */
  readonly readings?: ReadableOptions | false
  readonly ends?: TailedOptions
  readonly parts?: SlicedOptions
  /** Wrapper of texts, such as `redacted`, applied before a part is cut off. */
  readonly through?: (provider: Provider) => Provider
}

/**
 * Combines the wrappers for documents. From the inside out:
 *
 * 1. `tailed` finds the last lines in the bytes of a resource.
 * 2. `decoded` decodes text in other encodings; the wrappers after it see UTF-8.
 * 3. `documented` reads front matter and looks for translations.
 * 4. `readable` reads documents as text. For formats that state the encodings of their texts, it gets the stored bytes.
 * 5. `through`, if something has to be removed from texts. It comes before parts are cut off, because it may not recognise half a secret.
 * 6. `sliced` cuts parts of the result.
 */
export function documents(provider: Provider, options: DocumentsOptions = {}): Provider {
  const { language, encodings, maxDecodedBytes, frontMatter, headings, languages } = options
  const { readings, ends, parts, through } = options
  const texts = decoded(tailed(provider, ends), defined({ rules: encodings, language, maxBytes: maxDecodedBytes }))
  const described = documented(texts, defined({ frontMatter, headings, languages }))
  const whole = readings === false ? described : readable(described, { ...readings, stored: provider })
  const all = sliced(through === undefined ? whole : withMargin(whole, through), parts)
  return {
    ...all,
    ...(readings === false
      ? {}
      : { templates: async (context) => mergeReadingTemplates((await all.templates?.(context)) ?? []) }),
    complete: async (request, context) =>
      isOwn(request.template) ? completeForm(request) : all.complete?.(request, context),
  }
}

/** Whether a template is one of the wrappers here, which the provider does not know. */
function isOwn(template: string): boolean {
  return /^\{\+path\}\{\?(?:as|lines|bytes|tail|,)+\}$/.test(template)
}

/** Returns undefined for `path`, which is completed from the tree. */
function completeForm({ argument, arguments: filled }: CompletionRequest): Completion | undefined {
  if (argument.name !== 'as') return argument.name === 'path' ? undefined : { values: [] }
  const format = documentFormatOf(filled.get('path') ?? '', undefined)
  return completeFromValues(readingFormsOf(format ?? 'html'), argument.value)
}

const part: Template = {
  template: '{+path}{?as,lines,bytes}',
  free: ['lines', 'bytes'],
  name: 'Reading or part of a resource',
  title: 'A document as text, or a part of a text',
  description:
    'as=text is the text of a PDF, an office document, a book, a mail or a page of HTML; as=markdown keeps the headings, lists, ' +
    'tables and links of all but PDF. lines=10-40 counts from 1, bytes=0-4095 from 0; both ends are included, and the last may be ' +
    'left out. `_meta` says which part it is, and how to ask for the next.',
}

/** A part of a reading can also be requested, so the two templates become one. */
function mergeReadingTemplates(templates: readonly Template[]): readonly Template[] {
  const others = templates.filter(({ template }) => !isOwn(template) || template.includes('tail'))
  return [...others, part]
}

/** Number of lines that are examined before the shown ones. */
const margin = 1000

/**
 * Passes a tail through a wrapper together with the lines before it, and cuts these off again: without them, the wrapper could not
 * recognise a secret in whose middle the tail begins.
 *
 * @param through Removes something from texts, and leaves their other lines unchanged.
 */
function withMargin(provider: Provider, through: (provider: Provider) => Provider): Provider {
  const inner = through(provider)
  return {
    ...inner,
    read: async (request, context) => {
      const count = tailIn(request.params)
      if (count === undefined) return inner.read(request, context)
      const more = String(Math.min(count + margin, maxTailLines))
      const contents = await inner.read({ ...request, params: new Map([...request.params, ['tail', more]]) }, context)
      return contents.map((content) => lastLines(content, count))
    },
  }
}

/** Returns the last lines of a text, without its byte offsets, which are those of the source. */
function lastLines(content: Content, count: number): Content {
  if (!('text' in content)) return content
  const { text, ...facts } = content
  const { meta = {}, ...rest } = withoutPosition(facts)
  const tailFacts = meta[tailKey] as TailFacts | undefined
  const ends = Array.from(text.matchAll(/\n(?!$)/g), ({ index }) => index + 1)
  const start = ends.length < count ? 0 : (ends[ends.length - count] ?? 0)
  const lines = Math.min(count, text === '' ? 0 : ends.length + 1)
  const tail: TailFacts | undefined = tailFacts && { ...tailFacts, lines, earlier: tailFacts.earlier || start > 0 }
  return { ...rest, meta: { ...meta, ...(tail === undefined ? {} : { [tailKey]: tail }) }, text: text.slice(start) }
}
