import { documentFormatOf } from '../core/documents.ts'
import { baseName, parentOf } from '../core/path.ts'
import type { ContentMetadata } from '../core/provider.ts'
import { encodePath } from '../core/uri.ts'

/** A document with the same content in another language, recognised by its path. */
export interface TranslationPath {
  readonly path: string
  /** Undefined if the path of the document names no language. */
  readonly language?: string
}

/**
 * Returns the possible paths of the same document in other languages: `README.md` and `README.ja.md`, `README_JA.md` or `README-ja.md`,
 * `docs/ja/x.md` and `docs/en/x.md` or `docs/x.md`. None of them need exist.
 *
 * @param languages Language tags as file names have them, in lower case: `ja`, `zh-cn`.
 */
export function translationPathsOf(path: string, languages: readonly string[]): readonly TranslationPath[] {
  const [directory, name] = [parentOf(path), baseName(path)]
  const segments = directory.split('/').slice(0, -1)
  const inName = languageInName(name, languages)
  const inPath = segments.findLastIndex((segment) => languages.includes(segment.toLowerCase()))
  if (inName !== undefined) {
    const { stem, separator, mark, extension } = inName
    const others = languages.filter((language) => language !== mark.toLowerCase())
    return [
      { path: `${directory}${stem}${extension}` },
      ...others.map((language) => ({
        path: `${directory}${stem}${separator}${mark === mark.toUpperCase() ? language.toUpperCase() : language}${extension}`,
        language,
      })),
    ]
  }
  if (inPath !== -1) {
    const at = (language: string) => [...segments.with(inPath, language), name].join('/')
    const others = languages.filter((language) => language !== segments[inPath]?.toLowerCase())
    return [
      { path: [...segments.toSpliced(inPath, 1), name].join('/') },
      ...others.map((language) => ({ path: at(language), language })),
    ]
  }
  const dot = name.lastIndexOf('.')
  const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, '']
  // A language folder may be at the top, below the first folder, or in this folder.
  const indices = new Set([0, Math.min(1, segments.length), segments.length])
  return languages.flatMap((language) => [
    ...['.', '-', '_'].map((mark) => ({ path: `${directory}${stem}${mark}${language}${extension}`, language })),
    ...['_', '-'].map((mark) => ({
      path: `${directory}${stem}${mark}${language.toUpperCase()}${extension}`,
      language,
    })),
    ...[...indices].map((index) => ({ path: [...segments.toSpliced(index, 0, language), name].join('/'), language })),
  ])
}

function languageInName(name: string, languages: readonly string[]) {
  const [, stem = '', separator = '', mark = '', extension = ''] =
    /^(.+)([._-])([A-Za-z]{2}(?:-[A-Za-z]{2,4})?)(\.\w+)$/.exec(name) ?? []
  return languages.includes(mark.toLowerCase()) ? { stem, separator, mark, extension } : undefined
}

const texts = /\.(?:md|mdx|markdown|txt|rst|adoc|asciidoc|org)$/i

/** Whether the file at a path may be a document that has translations. */
export function isTranslatable(path: string): boolean {
  return texts.test(path) || documentFormatOf(path, undefined) !== undefined
}

export const alternatesKey = 'dev.hikidashi/alternates'

/** Returns metadata that names the translations of the document at a path, by relative references from its URI. */
export function alternatesMeta(translations: readonly TranslationPath[], path: string): Pick<ContentMetadata, 'meta'> {
  if (translations.length === 0) return {}
  return {
    meta: {
      [alternatesKey]: translations.map(({ path: at, ...facts }) => ({ href: referenceTo(at, path), ...facts })),
    },
  }
}

/** A relative reference (RFC 3986, section 4.2) from the URI of one path of a mount to another. */
export function referenceTo(path: string, from: string): string {
  const [a, b] = [from.split('/').slice(0, -1), path.split('/')]
  let shared = 0
  while (shared < a.length && shared < b.length - 1 && a[shared] === b[shared]) shared++
  const reference = encodePath([...a.slice(shared).map(() => '..'), ...b.slice(shared)].join('/'))
  // A colon in the first segment would end a scheme.
  return /^[^/]*:/.test(reference) ? `./${reference}` : reference
}
