import { toUnicodeEscape } from '../../core/entry.ts'
import type { ValueFormat } from './units.ts'

interface Mark {
  readonly value: number
  readonly text: string
}

export interface ValueAxis {
  readonly low: number
  readonly high: number
  readonly marks: readonly Mark[]
}

const tickCount = 5

export function valueAxis(min: number, max: number, format: ValueFormat): ValueAxis {
  let [low, high] = room(clampValue(min), clampValue(max))
  // The axis includes zero when the values are near zero.
  if (low > 0 && low <= (high - low) * 1.5) low = 0
  if (high < 0 && -high <= (high - low) * 1.5) high = 0
  const step = roundStep((high - low) / tickCount, format.binary)
  low = Math.floor(low / step + 1e-9) * step
  high = Math.ceil(high / step - 1e-9) * step
  const count = Math.min(20, Math.round((high - low) / step))
  const values = Array.from({ length: count + 1 }, (_, index) => {
    const value = low + index * step
    return Math.abs(value) < step * 1e-9 ? 0 : value
  })
  const texts = format.formatMarks(values, step)
  return { low, high, marks: values.map((value, index) => ({ value, text: texts[index] ?? '' })) }
}

/** Clamps a value to the range in which sums and quotients stay finite; a tiny value becomes 0. */
const clampValue = (value: number) => (Math.abs(value) < 1e-200 ? 0 : Math.max(-1e200, Math.min(1e200, value)))

function room(min: number, max: number): [low: number, high: number] {
  const size = Math.max(Math.abs(min), Math.abs(max))
  if (size === 0) return [0, 1]
  if (max - min > size * 1e-9) return [min, max]
  return max > 0 ? [0, max * 1.25] : [min * 1.25, 0]
}

/** Returns a round step: 1, 2, 2.5 or 5 times a power of 10; a power of 2 if `binary` is set and the step is at least 1. */
function roundStep(step: number, binary: boolean): number {
  if (binary && step >= 1) {
    const unit = 1024 ** Math.floor(Math.log2(step) / 10)
    const inUnit = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].find((factor) => factor * unit >= step * 0.999) ?? 1024
    return inUnit * unit
  }
  const power = 10 ** Math.floor(Math.log10(step))
  return ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= step * 0.999) ?? 10) * power
}

const daySeconds = 86_400

const timeSteps = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60),
  ...[1, 2, 3, 6, 12].map((hours) => hours * 3600),
  ...[1, 2, 7, 14, 30, 90, 180, 365, 3650].map((days) => days * daySeconds),
]

/** Returns about `most` marks of a time axis, in UTC. The label is the time of day; at a new day, and for steps of days, the date. */
export function timeMarks(start: number, end: number, most: number): readonly Mark[] {
  const step = timeSteps.find((seconds) => (end - start) / seconds <= most) ?? end - start
  const marks: Mark[] = []
  let dayBefore = ''
  for (let time = Math.ceil(start / step) * step; time <= end; time += step) {
    const [date = '', clock = ''] = new Date(time * 1000).toISOString().split('T')
    const isNew = dayBefore !== '' && date !== dayBefore
    dayBefore = date
    marks.push({ value: time, text: step >= daySeconds || isNew ? date : clock.slice(0, step < 60 ? 8 : 5) })
  }
  return marks
}

/** Escapes a text as XML content or attribute. Invisible characters are replaced by their codes. */
export function escapeXml(text: string): string {
  return visible(text).replace(/[&<>"']/g, (character) => entities[character] ?? '')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function visible(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe\uffff]/gu, toUnicodeEscape)
}

type Attributes = Readonly<Record<string, string | number>>

/** The content must already be markup. */
export function formatElement(name: string, attributes: Attributes, ...content: readonly string[]): string {
  const attributeText = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeXml(String(value))}"`)
  const head = `<${name}${attributeText.join('')}`
  return content.length === 0 ? `${head}/>` : `${head}>${content.join('')}</${name}>`
}

export function formatPixels(value: number): string {
  return String(Math.round(value * 10) / 10)
}

/** Estimates the width of a text in pixels at a font size. */
export function estimateTextWidth(text: string, size: number): number {
  return Array.from(text, characterWidth).reduce((sum, share) => sum + share, 0) * size
}

/** Width of a character as a share of the font size. Characters from U+2E80 on, mostly East Asian ones, count as square. */
const characterWidth = (character: string) => (character > '\u2e7f' ? 1 : 0.58)

export function cutToWidth(text: string, size: number, width: number): string {
  if (estimateTextWidth(text, size) <= width) return text
  let left = width / size - 1
  const index = Array.from(text).findIndex((character) => {
    left -= characterWidth(character)
    return left < 0
  })
  return `${Array.from(text).slice(0, index).join('').trimEnd()}…`
}
