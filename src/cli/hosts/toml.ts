import { parse, stringify, TomlError } from 'smol-toml'
import { isPlainData, type KeyPath, lineEndOf, nestedValue, type SettingsEditor, settingsError } from './types.ts'

/** A table is appended to the file as a block of text, or removed with its subtables. */
export const tomlEditor: SettingsEditor = {
  parse: (text) => (text.trim() === '' ? undefined : parseHostToml(text)),
  set: (text, path, value) => {
    const eol = lineEndOf(text)
    const head = without(text, path).trimEnd()
    return `${head}${head === '' ? '' : eol + eol}${formatTomlEntry(path, value).replaceAll('\n', eol)}`
  },
  remove: without,
  show: formatTomlEntry,
}

function parseHostToml(text: string): unknown {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const lines = text.split('\n').slice(0, error.line - 1)
    const offset = lines.reduce((sum, line) => sum + line.length + 1, 0) + error.column - 1
    throw settingsError(text, offset, 'this is not TOML. Fix it first.')
  }
}

function formatTomlEntry(path: KeyPath, value: Parameters<SettingsEditor['show']>[1]): string {
  return `${stringify(nestedValue(path, value)).trim()}\n`
}

/** Comments and blank lines behind a table belong to the next one. */
function without(text: string, path: KeyPath): string {
  return text
    .split(/^(?=[ \t]*\[)/m)
    .map((block) => {
      const lines = block.split(/(?<=\n)/)
      const keys = keysOf(lines[0]?.trim() ?? '')
      if (!path.every((key, i) => keys[i] === key)) return block
      const last = lines.findLastIndex((line) => !/^\s*(?:#|$)/.test(line))
      return lines.slice(last + 1).join('')
    })
    .join('')
}

function keysOf(line: string): readonly string[] {
  try {
    const keys: string[] = []
    let table: unknown = parse(line)
    while (isPlainData(table) && Object.keys(table).length === 1) {
      const [key = ''] = Object.keys(table)
      keys.push(key)
      table = table[key]
    }
    return keys
  } catch {
    return []
  }
}
