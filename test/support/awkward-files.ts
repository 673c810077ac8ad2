import type { ExpectedEntry } from '../../src/testing/index.ts'

const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256)

/** File names and contents that often cause errors, by path. */
export const awkwardFiles: Readonly<Record<string, string | Uint8Array>> = {
  // Names that sort around a directory: `a-b` < `a.txt` < `a/…` < `a0`.
  'a-b': 'dash',
  'a.txt': 'dot',
  'a/b/c/deep.md': '# deep\n',
  'a/b/c.md': '# less deep\n',
  a0: 'zero',
  // Names whose order in UTF-16 and in locales differs from the order in UTF-8.
  'kana/\u{ff71}.txt': 'half-width',
  'kana/\u{20bb7}野家.txt': 'beyond the basic plane',
  '日本語/資料 (最終版).txt': '梅雨',
  // The same name in both normalizations, and a directory in each.
  'twins/\u{304c}.txt': 'composed',
  'twins/\u{304b}\u{3099}.txt': 'decomposed',
  'twins/\u{e9}/x': 'composed',
  'twins/e\u{301}/x': 'decomposed',
  'case/README': 'capitals',
  'case/readme': 'small',
  'odd/👨‍👩‍👧.txt': 'family',
  'odd/ leading and trailing ': 'spaces',
  'odd/100%.txt': 'percent',
  'odd/%41.txt': 'escape',
  'odd/back\\slash': 'backslash',
  'odd/[id].tsx': 'brackets',
  'odd/?#&;,': 'structure',
  'odd/...': 'three dots',
  'odd/\u{10ffff}.txt': 'the last character',
  'empty.txt': '',
  'bom.txt': '\ufeffmarked',
  'binary.dat': bytes,
  'long/lines.txt': Array.from({ length: 5000 }, (_, i) => `${i}: 吾輩は猫である。\n`).join(''),
}

/** Returns many files in one directory. */
export function manyFiles(count: number): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`many/${i}.txt`, `number ${i}`]))
}

/** Returns the expected answers of a source of these files: text without its byte order mark. */
export function expectedOf(
  files: Readonly<Record<string, string | Uint8Array>>,
): Readonly<Record<string, ExpectedEntry>> {
  const entries = Object.entries(files).map(([path, content]) => [
    path,
    typeof content === 'string' ? { text: content.replace(/^\ufeff/, '') } : { bytes: content },
  ])
  return Object.fromEntries(entries)
}
