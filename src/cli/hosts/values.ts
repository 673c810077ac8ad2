/** Plain data of JSON, TOML and YAML. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/** Returns the value at a path of keys. */
export function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inner, key) => {
    if (typeof key === 'number') return Array.isArray(inner) ? inner[key] : undefined
    return isObject(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined
  }, value)
}

/** Returns the value with another one at a path; undefined removes it. Missing containers are created. */
export function withValueAt(value: unknown, path: readonly (string | number)[], next: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return next
  if (typeof key === 'number') {
    const list = Array.isArray(value) ? [...value] : []
    const item = withValueAt(list[key], rest, next)
    list.splice(key, 1, ...(item === undefined ? [] : [item]))
    return list
  }
  const inner = withValueAt(valueAt(value, [key]), rest, next)
  const others = isObject(value) ? value : {}
  if (inner !== undefined) return { ...others, [key]: inner }
  return Object.fromEntries(Object.entries(others).filter(([name]) => name !== key))
}

export function strings(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

/** A text cannot be read or edited. The message follows the name of the file. */
export function formatError(text: string, offset: number | undefined, message: string): Error {
  const error = new Error(offset === undefined ? `: ${message}` : `:${lineAndColumn(text, offset)}: ${message}`)
  error.name = 'FormatError'
  return error
}

function lineAndColumn(text: string, offset: number): string {
  const before = text.slice(0, offset)
  const line = before.split('\n').length
  return `${line}:${offset - before.lastIndexOf('\n')}`
}

/** The end of line that a text uses. */
export function eolOf(text: string): string {
  return /\r?\n/.exec(text)?.[0] ?? '\n'
}

/** The indentation of the line that contains an offset. */
export function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset))?.[0] ?? ''
}

/** Indents every line except the first, with the line ends of a text. */
export function indented(block: string, indent: string, eol: string): string {
  return block.split('\n').join(eol + indent)
}
