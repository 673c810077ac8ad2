import type { Resource } from '../../core/view.ts'

const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/** A size for people: `0 B`, `1023 B`, `1.5 KiB`, `12 MiB`. */
export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  let value = bytes / 1024
  let unit = 0
  // A value that would be rounded to 1024 of a unit is shown as 1 of the next.
  while (value >= 1023.5 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}

/** A time in ISO 8601 (UTC), to the second for people. */
export function formatTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** A resource for `--json`: as in a view, with the time in ISO 8601. */
export function resourceToJson({ modified, ...facts }: Resource): Readonly<Record<string, unknown>> {
  return modified === undefined ? facts : { ...facts, modified: new Date(modified).toISOString() }
}

/** A number with a word: `1 mount`, `2 mounts`. */
export function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`
}

/** A number with a word, for large numbers and irregular plurals: `1 entry`, `1,203 entries`. */
export function counted(number: number, one: string, many: string = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`
}
