import * as fc from 'fast-check'

/** One seed for all, so that a failure can be seen again: `ATTACK_SEED=… npx vitest run test/attack/fuzz.test.ts`. */
export const seed = Number(process.env.ATTACK_SEED ?? 20_260_728)
export const scale = Number(process.env.ATTACK_RUNS ?? 1)
export const runs = (count: number): fc.Parameters<unknown> => ({
  seed,
  numRuns: Math.ceil(count * scale),
  endOnFailure: true,
})

/** Pieces that mean something to some parser of URIs. */
const piece = fc.oneof(
  fc.constantFrom(
    '/',
    '//',
    '.',
    '..',
    '%2e',
    '%2E%2e',
    '%2f',
    '%5c',
    '\\',
    '%00',
    '%',
    '%25',
    '%zz',
    '?',
    '#',
    '@',
    ':',
    ';',
    '&',
    '=',
    '[',
    ']',
    '{',
    '}',
    ' ',
    '\t',
    '\n',
    '\0',
    '\u007f',
    '\u2028',
    '\ufeff',
    '\u202e',
    '\ud800',
    '\udc00',
    '%c0%ae',
    '%ed%a0%80',
    '~',
    '*',
    '|',
  ),
  fc.constantFrom(
    'file',
    'FILE',
    'rule',
    'mem',
    'count',
    'slow',
    '://',
    ':///',
    'guarded',
    'many',
    'none',
    'root',
    'secret',
    '.env',
    'id_rsa',
    '.git',
    'config',
    'denied.txt',
    'link-directory',
    'dir',
    'a.txt',
    'lines=1-2',
    'bytes=0-',
    '__proto__',
    'constructor',
  ),
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.stringMatching(/^%[0-9a-fA-F]{2}$/),
)
export const tail = fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join(''))
export const uri = fc.oneof(
  { weight: 4, arbitrary: tail.map((text) => (address: string) => `${address}/${text}`) },
  { weight: 1, arbitrary: tail.map((text) => (address: string) => `${address}${text}`) },
  { weight: 1, arbitrary: tail.map((text) => (address: string) => `rule://guarded/${text}${address.slice(0, 0)}`) },
  { weight: 1, arbitrary: tail.map((text) => () => text) },
  {
    weight: 1,
    arbitrary: fc.tuple(tail, tail).map(
      ([a, b]) =>
        (address: string) =>
          address.replace('root', `${a}root${b}`),
    ),
  },
)

/** Whatever JSON can say. */
export const json = fc.jsonValue({ maxDepth: 3 })
