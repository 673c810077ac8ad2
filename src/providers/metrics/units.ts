/** Units at the end of metric names, by the conventions of Prometheus and OpenMetrics. */
const known: ReadonlySet<string> = new Set([
  ...['seconds', 'milliseconds', 'microseconds', 'nanoseconds', 'minutes', 'hours', 'days'],
  ...['bytes', 'bits', 'ratio', 'percent', 'celsius', 'kelvin', 'meters', 'volts', 'amperes', 'joules', 'watts'],
  ...['grams', 'hertz'],
])

/** Suffixes for the kind of aggregation, which follow the unit. */
const endings = /_(?:total|sum|bucket|created|max|min)$/

/** Returns the unit in the name of a metric. Undefined: the name has none, or is a count or a date. */
export function unitIn(name: string): string | undefined {
  if (/_count$|(?:start_time|boot_time|timestamp|date)_seconds$/.test(name)) return undefined
  const last = name.replace(endings, '').split(/[_.]/).at(-1) ?? ''
  return known.has(last) ? last : undefined
}

/** Returns the names whose metadata may describe a metric: parts of a histogram or a summary share that of the whole. */
export function familyNames(name: string): readonly string[] {
  const base = name.replace(/_(?:bucket|count|sum|total|created|info)$/, '')
  return base === name ? [name] : [name, base]
}

/** A scale of numbers, and the symbol after them. */
interface Scale {
  readonly symbol: string
  readonly size: number
}

const scales = (...pairs: readonly (readonly [symbol: string, size: number])[]): readonly Scale[] =>
  pairs.map(([symbol, size]) => ({ symbol, size }))

const plain: Scale = { symbol: '', size: 1 }
const decimal = [...scales(['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]), plain]
const small = scales(['m', 1e-3], ['µ', 1e-6], ['n', 1e-9])
const binary = scales(['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10], ['B', 1])
const durations = scales(
  ...([
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
    ['ms', 1e-3],
    ['µs', 1e-6],
    ['ns', 1e-9],
  ] as const),
)
const shares = scales(['%', 0.01])

const symbols: Readonly<Record<string, string>> = {
  ...{ bits: 'bit', percent: '%', celsius: '°C', kelvin: 'K', meters: 'm', volts: 'V', amperes: 'A' },
  ...{ joules: 'J', watts: 'W', grams: 'g', hertz: 'Hz' },
}

/** Formatter of the values of one unit. */
export interface ValueFormat {
  /** Whether round numbers are powers of 2. */
  readonly binary: boolean
  /** Formats one value with four digits: `1.5 MiB`, `12 ms`, `1.234k`. */
  format(value: number): string
  /** Formats the marks of an axis at distance `apart`: all in one scale, with enough digits to differ. */
  formatMarks(values: readonly number[], apart: number): readonly string[]
}

/** Returns the formatter of a unit; plain numbers without a unit. */
export function formatOf(unit: string | undefined): ValueFormat {
  const symbol = unit === undefined ? '' : (symbols[unit] ?? '')
  const all = scalesOf(unit, symbol)
  const scaleFor = (size: number): Scale => {
    const one = all.find((scale) => scale.size === 1)
    if (size === 0) return one ?? all[0] ?? plain
    return all.find((scale) => size >= scale.size * 0.99995) ?? all.at(-1) ?? plain
  }
  const write = (digits: string, scale: Scale) => {
    const ending = scale.symbol + symbol
    return /^(?:|[TGMk]|%)$/.test(ending) ? digits + ending : `${digits} ${ending}`
  }
  return {
    binary: unit === 'bytes',
    format: (value) => {
      if (Number.isNaN(value)) return 'NaN'
      if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
      const scale = scaleFor(Math.abs(value))
      return write(String(Number((value / scale.size).toPrecision(4))), scale)
    },
    formatMarks: (values, apart) => {
      const size = Math.max(...values.map(Math.abs))
      const scale = scaleFor(size)
      const decimals = decimalsOf(apart / scale.size)
      // Enough significant digits that values which differ by `apart` have different texts.
      const significant = Math.max(4, Math.min(17, Math.ceil(Math.log10(size / apart)) + 2))
      const digits = (value: number) => {
        const inScale = value / scale.size
        const isPlain = decimals <= 12 && Math.abs(inScale) < 1e15
        return isPlain ? inScale.toFixed(decimals) : String(Number(inScale.toPrecision(significant)))
      }
      return values.map((value) => (value === 0 ? '0' : write(digits(value), scale)))
    },
  }
}

/** Returns the number of decimals that distinguish values a step apart: those of the step itself, unless they are many more than needed. */
function decimalsOf(step: number): number {
  const enough = Math.min(20, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9) + 1))
  for (let decimals = 0; decimals < enough; decimals++) {
    const shifted = step * 10 ** decimals
    if (Math.abs(shifted - Math.round(shifted)) < 1e-6 * shifted) return decimals
  }
  return enough
}

function scalesOf(unit: string | undefined, symbol: string): readonly Scale[] {
  if (unit === 'bytes') return binary
  if (unit === 'seconds') return durations
  if (unit === 'ratio') return shares
  if (unit === 'percent' || unit === 'celsius') return [plain]
  return symbol === '' ? decimal : [...decimal, ...small]
}
