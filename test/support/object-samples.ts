import { awkwardFiles, expectedOf, manyFiles } from './awkward-files.ts'

/** Keys and contents of which most go wrong somewhere: what every store of objects is tested with. */
export const heldObjects: Readonly<Record<string, string | Uint8Array>> = {
  ...awkwardFiles,
  // A directory can have the name of an object.
  a: 'an object, and a directory',
  'odd/a+b c.txt': 'a plus and a space',
  'odd/=@:$': 'what paths may hold as it is',
  'odd/<xml> & "quotes"': "what XML escapes, and ' too",
  // More than one answer of a store has.
  ...manyFiles(1200),
}

/** What the contract suite expects of them. */
export const expectedObjects = {
  entries: expectedOf(heldObjects),
  missing: [
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
    'x'.repeat(1025),
  ],
}

/** Keys that no path can name: they are never listed, and never read. */
export const oddKeys = [
  'a//b',
  '/abs',
  '../../x',
  './x',
  'a/./b',
  'a/../b',
  '.',
  '..',
  'folder/',
  'a\u0001b',
  'line\nend',
  'x/\u2028',
]
