/** What makes a word stand out on a terminal. Each gives the text back as it is where there are no colours. */
export interface Colours {
  bold(text: string): string
  dim(text: string): string
  red(text: string): string
  green(text: string): string
  yellow(text: string): string
  /** What was looked for, in what was found. */
  mark(text: string): string
}

const codes = {
  bold: ['1', '22'],
  dim: ['2', '22'],
  red: ['31', '39'],
  green: ['32', '39'],
  yellow: ['33', '39'],
  mark: ['1;33', '22;39'],
} as const satisfies Readonly<Record<keyof Colours, readonly [string, string]>>

/** Colours for an output. What is coloured holds no escapes of its own: it went through `escapeText`. */
export function coloursFor(isTerminal: boolean, env: NodeJS.ProcessEnv = process.env): Colours {
  const isOn = isColourful(isTerminal, env)
  const paint = (name: keyof Colours) => (text: string) => {
    const [on, off] = codes[name]
    return isOn && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text
  }
  return {
    bold: paint('bold'),
    dim: paint('dim'),
    red: paint('red'),
    green: paint('green'),
    yellow: paint('yellow'),
    mark: paint('mark'),
  }
}

/**
 * Whether an output is coloured: a terminal is, unless `NO_COLOR` holds anything (https://no-color.org) or `TERM` is `dumb`.
 * `FORCE_COLOR` is the user's last word, for pipes too: `0` or `false` is never, anything else always, as in Node itself.
 */
export function isColourful(isTerminal: boolean, env: NodeJS.ProcessEnv = process.env): boolean {
  const { FORCE_COLOR, NO_COLOR, TERM } = env
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false'
  return isTerminal && (NO_COLOR === undefined || NO_COLOR === '') && TERM !== 'dumb'
}
