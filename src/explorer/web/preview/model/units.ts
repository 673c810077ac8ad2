/**
 * Returns a function that writes values of a metric: sizes and times in units that people read, all other values as short numbers.
 *
 * @param maxDigits Maximum number of significant digits.
 */
export function formatUnit(unit: string | undefined, locale: string, maxDigits = 4): (value: number) => string {
  const number = new Intl.NumberFormat(locale, { maximumSignificantDigits: maxDigits, notation: 'compact' })
  const small = new Intl.NumberFormat(locale, { maximumSignificantDigits: maxDigits })
  const plain = (value: number) => (Math.abs(value) < 100_000 ? small : number).format(value)
  if (unit === 'bytes') return (value) => sizeText(value, small)
  if (unit === 'seconds') return (value) => durationText(value, small)
  if (unit === 'ratio') return (value) => `${small.format(value * 100)} %`
  if (unit === undefined) return plain
  return (value) => `${plain(value)} ${unit}`
}

function sizeText(value: number, format: Intl.NumberFormat): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  let [size, at] = [value, 0]
  while (Math.abs(size) >= 1024 && at < units.length - 1) {
    size /= 1024
    at++
  }
  return `${format.format(size)} ${units[at] ?? ''}`
}

function durationText(value: number, format: Intl.NumberFormat): string {
  const size = Math.abs(value)
  if (size === 0) return '0 s'
  if (size < 1e-3) return `${format.format(value * 1e6)} µs`
  if (size < 1) return `${format.format(value * 1e3)} ms`
  if (size < 120) return `${format.format(value)} s`
  if (size < 7200) return `${format.format(value / 60)} min`
  if (size < 172_800) return `${format.format(value / 3600)} h`
  return `${format.format(value / 86_400)} d`
}
