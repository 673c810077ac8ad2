/** Styles of a terminal. Without colours, each returns the text unchanged. */
export interface Colours {
  bold(text: string): string
  dim(text: string): string
  red(text: string): string
  green(text: string): string
  yellow(text: string): string
  /** Marks a match of a search. */
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

/** Returns the styles for an output. Styled texts must have gone through `escapeText` before. */
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
 * Whether an output is coloured. A terminal is coloured unless `NO_COLOR` is not empty (https://no-color.org) or `TERM` is
 * `dumb`. `FORCE_COLOR` overrides this, also for pipes: `0` or `false` means never, any other value always, as in Node itself.
 */
export function isColourful(isTerminal: boolean, env: NodeJS.ProcessEnv = process.env): boolean {
  const { FORCE_COLOR, NO_COLOR, TERM } = env
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false'
  return isTerminal && (NO_COLOR === undefined || NO_COLOR === '') && TERM !== 'dumb'
}
