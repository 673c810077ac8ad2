import type { SettingsFormat } from '../../../src/providers/settings/index.ts'

/** Places of a value in a settings file. */
export const positions = ['value', 'nested', 'list', 'comment', 'key', 'block'] as const

export type Position = (typeof positions)[number]

const quoted = (value: string) => JSON.stringify(value)
const property = (value: string) => value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n\\\n  ')
const oneLine = (value: string) => value.replaceAll('\n', ' ')

/** Returns a settings file with a value under the name `name`; `undefined` if the format has no such place. */
export function writeSettings(
  format: SettingsFormat,
  position: Position,
  value: string,
  name = 'greeting',
): string | undefined {
  const plain = /^[\w.-]+$/.test(value)
  if (position === 'key' && !plain) return undefined
  switch (format) {
    case 'json':
      switch (position) {
        case 'value':
          return `{\n  "host": "db",\n  ${quoted(name)}: ${quoted(value)},\n}\n`
        case 'nested':
          return `{"a": {"b": [{${quoted(name)}: ${quoted(value)}, "x": 1}]}}`
        case 'list':
          return `{${quoted(name)}: ["x", ${quoted(value)}]}`
        case 'comment':
          return `{\n  // see ${oneLine(value)}\n  "a": 1 /* ${oneLine(value)} */\n}`
        case 'key':
          return `{${quoted(value)}: 1}`
        case 'block':
          return undefined
      }
      break
    case 'yaml':
      switch (position) {
        case 'value':
          return `host: db\n${name}: ${plain ? value : quoted(value)}\nport: 1\n`
        case 'nested':
          return `a:\n  b:\n    - ${name}: ${plain ? value : quoted(value)}\n      x: 1\n`
        case 'list':
          return `${name}: [x, ${quoted(value)}]\nother:\n  - ${quoted(value)}\n`
        case 'comment':
          return `# see ${oneLine(value)}\na: 1 # ${oneLine(value)}\n`
        case 'key':
          return `${value}: 1\n`
        case 'block':
          return `${name}: |\n  first\n${value.replace(/^/gm, '  ')}\n  last\nfolded: >-\n${value.replace(/^/gm, '  ')}\n`
      }
      break
    case 'toml':
      switch (position) {
        case 'value':
          return `host = "db"\n${quoted(name)} = ${quoted(value)}\n`
        case 'nested':
          return `[a.b]\n${quoted(name)} = ${quoted(value)}\n[[c]]\nd = { ${quoted(name)} = ${quoted(value)} }\n`
        case 'list':
          return `${quoted(name)} = ["x", ${quoted(value)}]\n`
        case 'comment':
          return `# see ${oneLine(value)}\na = 1 # ${oneLine(value)}\n`
        case 'key':
          return `${quoted(value)} = 1\n`
        case 'block':
          return `${quoted(name)} = '''\nfirst\n${value}\n'''\n`
      }
      break
    case 'ini':
      if (value.includes('\n')) return undefined
      switch (position) {
        case 'value':
          return `host = db\n${name} = ${value}\n`
        case 'nested':
          return `[a]\n${name}=${value}\n[b]\nx = 1\n`
        case 'list':
          return `[a]\n${name} = x\n${name} = ${value}\n`
        case 'comment':
          return `; see ${value}\n# see ${value}\na = 1 ; ${value}\n`
        case 'key':
          return `[a]\n${value} = 1\n`
        case 'block':
          return `[a]\n${name} = first\n   ${value}\n`
      }
      break
    case 'dotenv':
      switch (position) {
        case 'value':
          return `HOST=db\n${name}=${value.includes('\n') ? `"${value}"` : value}\n`
        case 'nested':
          return `export ${name}='${value}'\n`
        case 'list':
          return `${name}="x,${value}"\n`
        case 'comment':
          return `# see ${oneLine(value)}\n#${name}=${oneLine(value)}\nA=1 # ${oneLine(value)}\n`
        case 'key':
          return `${value}=1\n`
        case 'block':
          return `A=1\n${oneLine(value)}\n`
      }
      break
    case 'properties':
      switch (position) {
        case 'value':
          return `host=db\n${name}=${property(value)}\n`
        case 'nested':
          return `a.b.${name} : ${property(value)}\n`
        case 'list':
          return `${name}=x,${property(value)}\n`
        case 'comment':
          return `# see ${oneLine(value)}\n! see ${oneLine(value)}\na=1\n`
        case 'key':
          return `${value}=1\n`
        case 'block':
          return `${name}=first,\\\n    ${property(value)}\n`
      }
  }
  return undefined
}
