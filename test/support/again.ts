/** A test that failed, or a file of tests that could not be loaded. */
export interface Failed {
  /** The path of the file, from the root of the project. */
  readonly file: string
  /** The titles around the test, outermost first, then its own; none for a whole file. */
  readonly titles: readonly string[]
  /** The messages of its errors. */
  readonly messages: readonly string[]
}

/** The environment variable with the seed of every property of fast-check without its own seed. */
export const seedVariable = 'FAST_CHECK_SEED'

/** The environment variables that change what tests do. */
const deciding = ['HIKIDASHI_VOLUME', 'HIKIDASHI_REQUIRE', 'HIKIDASHI_SEEDS', 'ATTACK_RUNS']

/**
 * Returns the command line that repeats a failed test: with its volume, and with its seed if its title or errors contain one
 * (`ATTACK_SEED=…`, `HIKIDASHI_SEED=…`, or `seed: …` by fast-check).
 */
export function commandOf({ file, titles, messages }: Failed, environment: NodeJS.ProcessEnv = process.env): string {
  const said = [...titles, ...messages].join('\n')
  const seeds = new Map<string, string>()
  for (const [, name = '', seed = ''] of said.matchAll(/\b(ATTACK_SEED|HIKIDASHI_SEED)=(\d+)/g)) seeds.set(name, seed)
  const ofFastCheck = /\{ seed: (-?\d+),/.exec(said)?.[1]
  if (ofFastCheck !== undefined && seeds.size === 0) seeds.set(seedVariable, ofFastCheck)
  const given = deciding.flatMap((name) => {
    const value = environment[name]
    return value === undefined ? [] : [`${name}=${quoted(value)}`]
  })
  return [
    ...given,
    ...[...seeds].map(([name, seed]) => `${name}=${seed}`),
    'npx vitest run',
    quoted(file),
    ...(titles.length === 0 ? [] : ['-t', quoted(`^${titles.map(escaped).join(' ')}$`)]),
  ].join(' ')
}

/** Returns a regular expression that matches a title, without characters that a terminal does not show. */
function escaped(title: string): string {
  return title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/[^\P{C}]/gu, '.')
}

/** Quotes a word for a shell. */
function quoted(word: string): string {
  return /^[\w./,=:-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
