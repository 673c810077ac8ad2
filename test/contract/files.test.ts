import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, test } from 'vitest'
import { files } from '../../src/providers/files/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'

const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256)

const held: Readonly<Record<string, string | Uint8Array>> = {
  // Around a directory: `a-b` < `a.txt` < `a/…` < `a0`.
  'a-b': 'dash',
  'a.txt': 'dot',
  'a/b/c/deep.md': '# deep\n',
  'a/b/c.md': '# less deep\n',
  a0: 'zero',
  // Orders that differ in UTF-16, and in every locale.
  'kana/\u{ff71}.txt': 'half-width',
  'kana/\u{20bb7}野家.txt': 'beyond the basic plane',
  '日本語/資料 (最終版).txt': '梅雨',
  // The same name twice, in both normalizations, and a directory in each.
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
  ...Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`many/${i}.txt`, `number ${i}`])),
}

describeProvider(
  { describe, test },
  'files',
  async () => {
    const root = await mkdtemp(join(tmpdir(), 'hikidashi-'))
    for (const [path, content] of Object.entries(held)) {
      await mkdir(join(root, dirname(path)), { recursive: true })
      await writeFile(join(root, path), content)
    }
    const entries = Object.entries(held).map(([path, content]) => [
      path,
      typeof content === 'string' ? { text: content.replace(/^\ufeff/, '') } : { bytes: content },
    ])
    return {
      provider: await files({ root }),
      expectation: {
        entries: Object.fromEntries(entries),
        missing: [
          'a',

          'a/b',
          'many',
          'none/',
          'none/x',
          'a.txt/',
          'a.txt/x',
          'A.TXT',
          'odd/A.txt',
          'odd/100%25.txt',
          'a//b',
          '日本語',
        ],
      },
      dispose: () => rm(root, { recursive: true }),
    }
  },
  { through: { sliced } },
)
