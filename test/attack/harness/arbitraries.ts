import { randomInt } from 'node:crypto'
import * as fc from 'fast-check'
import { volume } from '../../support/volume.ts'
import found from '../corpus/found.json' with { type: 'json' }

const given = process.env.ATTACK_SEED ?? '20260728'
/**
 * One seed for all fuzz tests, so that a failure can be repeated: `ATTACK_SEED=… npx vitest run test/attack/fuzz.test.ts`.
 * `random` chooses another seed for each run, and prints it.
 */
export const seed = given === 'random' ? randomInt(2 ** 31) : Number(given)
/** Factor on the number of runs: `ATTACK_RUNS=50` takes hours, and finds more. By default the volume of this run. */
export const scale = Number(process.env.ATTACK_RUNS ?? volume)
export const announceSeed = (): void => console.log(`fuzzed with ATTACK_SEED=${seed} ATTACK_RUNS=${scale}`)

export const runs = (count: number): fc.Parameters<unknown> => ({
  seed,
  numRuns: Math.ceil(count * scale),
  endOnFailure: true,
})

type Found = Readonly<Record<string, readonly unknown[][]>>

/**
 * Checks a property: first with the inputs that once broke it (in `corpus/found.json`, by its name), then with random ones. A new
 * failure is printed in the form of that file, so inputs must be JSON.
 */
export async function hold<Ts>(
  name: string,
  property: fc.IAsyncProperty<Ts>,
  count: number,
  more: fc.Parameters<Ts> = {},
) {
  const examples = ((found as Found)[name] ?? []) as Ts[]
  const outcome = await fc.check(property, {
    seed,
    numRuns: Math.ceil(count * scale) + examples.length,
    examples,
    endOnFailure: true,
    ...more,
  })
  if (!outcome.failed) return
  const kept = JSON.stringify(outcome.counterexample)
  throw new Error(
    `${fc.defaultReportMessage(outcome)}\nWith ATTACK_SEED=${seed}. To keep it, add to ${JSON.stringify(name)} in test/attack/corpus/found.json:\n${kept}`,
  )
}

/** Pieces of URIs with a meaning to some parser. */
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
/** Random URIs, in which `{root}` stands for the address of the root and `{parent}` for its parent: see {@link placed}. */
export const uri = fc.oneof(
  { weight: 4, arbitrary: tail.map((text) => `{root}/${text}`) },
  { weight: 1, arbitrary: tail.map((text) => `{root}${text}`) },
  { weight: 1, arbitrary: tail.map((text) => `rule://guarded/${text}`) },
  { weight: 1, arbitrary: tail },
  { weight: 1, arbitrary: fc.tuple(tail, tail).map(([a, b]) => `{parent}/${a}root${b}`) },
)

/** Puts the address of the root into a random URI. */
export function placed(text: string, address: string): string {
  return text.replaceAll('{root}', address).replaceAll('{parent}', address.slice(0, address.lastIndexOf('/')))
}

/** Any JSON value. */
export const json = fc.jsonValue({ maxDepth: 3 })
