/** The units that names of metrics end in, by the conventions of Prometheus and OpenMetrics. */
const known: ReadonlySet<string> = new Set([
  ...['seconds', 'milliseconds', 'microseconds', 'nanoseconds', 'minutes', 'hours', 'days'],
  ...['bytes', 'bits', 'ratio', 'percent', 'celsius', 'kelvin', 'meters', 'volts', 'amperes', 'joules', 'watts'],
  ...['grams', 'hertz'],
])

/** Endings that say what is counted of a metric, not in what unit. */
const endings = /_(?:total|sum|bucket|created|max|min)$/

/** The unit that the name of a metric tells. `undefined`: it tells none, or is a number of things, or a date. */
export function unitIn(name: string): string | undefined {
  if (/_count$|(?:start_time|boot_time|timestamp|date)_seconds$/.test(name)) return undefined
  const last = name.replace(endings, '').split(/[_.]/).at(-1) ?? ''
  return known.has(last) ? last : undefined
}

/** The names that a metric may be described by: a part of a histogram or a summary is by that of the whole. */
export function familyNames(name: string): readonly string[] {
  const base = name.replace(/_(?:bucket|count|sum|total|created|info)$/, '')
  return base === name ? [name] : [name, base]
}

/** A size in which numbers are written, and what stands behind them then. */
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

/** How values of one unit are written. */
export interface ValueFormat {
  /** Whether round numbers are powers of 2. */
  readonly binary: boolean
  /** One value, in four digits: `1.5 MiB`, `12 ms`, `1.234k`. */
  format(value: number): string
  /** The marks of an axis, which are so far apart: all in one size, with as many digits as tell them apart. */
  formatMarks(values: readonly number[], apart: number): readonly string[]
}

/** How values of a unit are written; of none, as plain numbers. */
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
      // Enough significant digits that values which differ by `apart` do not read alike.
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

/** How many decimals tell apart what differs by a step: as many as it has itself, if those are not many more. */
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
