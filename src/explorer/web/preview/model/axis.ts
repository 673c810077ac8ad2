import { formatUnit } from './units.ts'

/** Significant digits to try, from the fewest to the most that a number has. */
const digits = [4, 6, 8, 12, 17]

/**
 * Labels of the values of an axis, each different from its neighbour: with as few digits as that takes.
 *
 * @param unit Unit of the metric, as {@link formatUnit} takes it.
 */
export function valueLabels(values: readonly number[], unit: string | undefined, locale: string): string[] {
  let labels: string[] = []
  for (const count of digits) {
    labels = values.map(formatUnit(unit, locale, count))
    if (areDistinct(labels)) break
  }
  return labels
}

const month: Intl.DateTimeFormatOptions = { year: 'numeric', month: 'short' }
const date: Intl.DateTimeFormatOptions = { month: 'short', day: 'numeric' }
const hour: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit' }
const second: Intl.DateTimeFormatOptions = { ...hour, second: '2-digit' }
const millisecond: Intl.DateTimeFormatOptions = { ...second, fractionalSecondDigits: 3 }

const day = 86_400

/**
 * Labels of the times of an axis, each different from its neighbour.
 *
 * @param times Seconds since 1970, ascending.
 * @param span Seconds from the first to the last time of the chart.
 */
export function timeLabels(times: readonly number[], span: number, locale: string): string[] {
  let labels: string[] = []
  for (const form of formsFor(span)) {
    const format = new Intl.DateTimeFormat(locale, form)
    // On an axis of hours, midnight shows its date.
    const midnight = form === hour ? new Intl.DateTimeFormat(locale, date) : format
    labels = times.map((time) => (isMidnight(time) ? midnight : format).format(time * 1000))
    if (areDistinct(labels)) break
  }
  return labels
}

/** Forms of a time, from the shortest to the most precise. */
function formsFor(span: number): readonly Intl.DateTimeFormatOptions[] {
  if (span > 200 * day) return [month, date, { ...date, ...hour }]
  if (span > 3 * day) return [date, { ...date, ...hour }]
  return span < 180 ? [second, millisecond] : [hour, second, millisecond]
}

function isMidnight(time: number): boolean {
  const local = new Date(time * 1000)
  return local.getHours() === 0 && local.getMinutes() === 0
}

function areDistinct(labels: readonly string[]): boolean {
  return labels.every((label, index) => label !== labels[index - 1])
}
