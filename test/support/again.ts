/** A test that failed, or a file of tests that could not be loaded. */
export interface Failed {
  /** The path of the file, from the root of the project. */
  readonly file: string
  /** The titles around the test, outermost first, then its own; none for a whole file. */
  readonly titles: readonly string[]
  /** What its errors say. */
  readonly messages: readonly string[]
}

/** The environment variable with the seed of every property of fast-check that has none of its own. */
export const seedVariable = 'FAST_CHECK_SEED'

/** The variables of a run that decide what its tests do. */
const deciding = ['HIKIDASHI_VOLUME', 'HIKIDASHI_REQUIRE', 'HIKIDASHI_SEEDS', 'ATTACK_RUNS']

/**
 * The command line that runs a failed test again as it ran: with its volume, and with the seed where one is in its title or in
 * what its errors say (`ATTACK_SEED=…`, `HIKIDASHI_SEED=…`, or `seed: …` by fast-check).
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

/** A title as a regular expression for it, without characters that a terminal does not show. */
function escaped(title: string): string {
  return title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/[^\P{C}]/gu, '.')
}

/** A word of a command line, for a shell. */
function quoted(word: string): string {
  return /^[\w./,=:-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
