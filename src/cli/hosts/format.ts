import { isDeepStrictEqual } from 'node:util'
import { failed } from '../terminal/exit.ts'
import { json } from './json.ts'
import { toml } from './toml.ts'
import type { Format, Host, Path } from './types.ts'
import { type Json, valueAt, withValueAt } from './values.ts'
import { yaml } from './yaml.ts'

const formats: Readonly<Record<Host['format'], Format>> = { json, toml, yaml }

/** A format for people who run commands: it names the file, and lets nothing through that changed anything else. */
export function formatOf(host: Host, file: string): Format {
  const format = formats[host.format]
  const named = <T>(work: () => T): T => {
    try {
      return work()
    } catch (error) {
      if (error instanceof Error && error.name === 'FormatError') throw failed(`${file}${error.message}`)
      throw error
    }
  }
  const checked = (text: string, path: Path, value: Json | undefined, after: string): string => {
    const same = isDeepStrictEqual(
      plain(format.parse(after)),
      plain(withValueAt(format.parse(text) ?? {}, path, value)),
    )
    if (!same)
      throw failed(`${file} is written in a way that cannot be edited safely. Add it by hand: --print shows what.`)
    return after
  }
  return {
    parse: (text) => named(() => format.parse(text)),
    set: (text, path, value) => named(() => checked(text, path, value, format.set(text, path, value))),
    remove: (text, path) =>
      named(() => (valueAt(format.parse(text), path) === undefined ? text : removed(format, text, path, file))),
    show: format.show,
  }
}

function removed(format: Format, text: string, path: Path, file: string): string {
  const after = format.remove(text, path)
  const is = plain(format.parse(after) ?? {})
  const expected = plain(withValueAt(format.parse(text), path, undefined))
  // An emptied container may be removed (TOML keeps no empty tables), or remain empty.
  const container = path.slice(0, -1)
  const without = plain(withValueAt(expected, container, undefined))
  if (isDeepStrictEqual(is, expected) || (isEmpty(valueAt(expected, container)) && isDeepStrictEqual(is, without)))
    return after
  throw failed(`${file} is written in a way that cannot be edited safely. Take the entry out by hand.`)
}

const isEmpty = (value: unknown) => typeof value === 'object' && value !== null && Object.keys(value).length === 0

/** Without prototypes and classes of the parsers, which would make the same things differ. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
}
