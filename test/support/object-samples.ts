import { awkwardFiles, expectedOf, manyFiles } from './awkward-files.ts'

/** Keys and contents that often cause errors, with which every object store is tested. */
export const heldObjects: Readonly<Record<string, string | Uint8Array>> = {
  ...awkwardFiles,
  // An object and a directory can have the same name.
  a: 'an object, and a directory',
  'odd/a+b c.txt': 'a plus and a space',
  'odd/=@:$': 'what paths may hold as it is',
  'odd/<xml> & "quotes"': "what XML escapes, and ' too",
  // More keys than one answer of a store can hold.
  ...manyFiles(1200),
}

/** The expected answers of the contract suite. */
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

/** Keys that are no valid paths: they are neither listed nor read. */
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
