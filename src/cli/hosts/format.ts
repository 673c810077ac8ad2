import { isDeepStrictEqual } from 'node:util'
import { commandFailure } from '../terminal/exit.ts'
import { jsonEditor } from './json.ts'
import { tomlEditor } from './toml.ts'
import { type Host, type Json, type KeyPath, type SettingsEditor, valueAt, withValueAt } from './types.ts'
import { yamlEditor } from './yaml.ts'

/** The text of the file is one value, at the path `text`. */
const text: SettingsEditor = {
  parse: (whole) => (whole === '' ? {} : { text: whole }),
  set: (_, __, value) => String(value),
  remove: () => '',
  show: (_, value) => String(value),
}

const formats: Readonly<Record<Host['format'], SettingsEditor>> = {
  json: jsonEditor,
  toml: tomlEditor,
  yaml: yamlEditor,
  text,
}

/** Errors of the editor name the file. It refuses an edit that would change another value. */
export function settingsEditorFor(host: Host, file: string): SettingsEditor {
  const format = formats[host.format]
  const parse = (text: string) => {
    try {
      return format.parse(text)
    } catch (error) {
      if (error instanceof Error && error.name === 'FormatError') throw commandFailure(`${file}${error.message}`)
      throw error
    }
  }
  const edited = (text: string, path: KeyPath, value: Json | undefined, edit: () => string): string => {
    const expected = withValueAt(parse(text) ?? {}, path, value)
    const after = unlessRefused(edit)
    if (
      after !== undefined &&
      hasExpectedSettings(
        unlessRefused(() => format.parse(after)),
        expected,
        path,
      )
    )
      return after
    const isHook = path[0] === 'hooks' || path[0] === 'version'
    const hint = isHook ? 'docs/hooks.md describes the hooks' : '--print shows it'
    const advice = value === undefined ? 'Remove the entry by hand.' : `Add the entry by hand: ${hint}.`
    throw commandFailure(`${file} has a syntax that cannot be edited safely. ${advice}`)
  }
  return {
    parse,
    set: (text, path, value) => edited(text, path, value, () => format.set(text, path, value)),
    remove: (text, path) => edited(text, path, undefined, () => format.remove(text, path)),
    show: format.show,
  }
}

function unlessRefused<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Error) || error instanceof TypeError) throw error
    return undefined
  }
}

/** A container that became empty may be removed, as in TOML, or may remain. */
function hasExpectedSettings(settings: unknown, expected: unknown, path: KeyPath): boolean {
  const [is, whole, container] = [toPlainValue(settings ?? {}), toPlainValue(expected), path.slice(0, -1)]
  if (isDeepStrictEqual(is, whole)) return true
  return (
    isEmpty(valueAt(whole, container)) && isDeepStrictEqual(is, toPlainValue(withValueAt(whole, container, undefined)))
  )
}

const isEmpty = (value: unknown) => typeof value === 'object' && value !== null && Object.keys(value).length === 0

/** Prototypes and classes of the parsers would make equal values differ. */
function toPlainValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toPlainValue)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, toPlainValue(inner)]))
}
