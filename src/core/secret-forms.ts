import { unitsOf } from './aho-corasick.ts'

/** Returns the parts of a secret that are secret by themselves, the whole first. */
export function partsOf(secret: string): readonly string[] {
  const parts = [secret, secret.trim()]
  const password = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#@:]*:([^/?#]*)@/.exec(secret.trim())?.[1]
  if (password !== undefined) parts.push(password, decoded(password))
  if (/[\r\n]/.test(secret))
    parts.push(...secret.split(/[\r\n]+/).flatMap((line) => (line.trim().length >= 20 ? [line.trim()] : [])))
  return parts
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Returns every spelling of a secret in text. */
export function formsOf(secret: string): readonly string[] {
  const plain = Buffer.from(secret)
  const hex = plain.toString('hex')
  const pairs = hex.match(/../g) ?? []
  const component = encodeURIComponent(secret.toWellFormed())
  const strict = component.replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  const escaped = JSON.stringify(secret).slice(1, -1)
  const units = unitsOf(secret).map((unit) => unit.toString(16).padStart(4, '0'))
  const spellings = [
    ...[secret, hex, hex.toUpperCase()],
    ...[component, strict, component.replaceAll('%20', '+')].flatMap((text) => [text, lowerEscapes(text)]),
    ...[pairs.map((pair) => `%${pair}`).join(''), pairs.map((pair) => `%${pair.toUpperCase()}`).join('')],
    ...[
      escaped,
      escaped.replaceAll('/', '\\/'),
      JSON.stringify(escaped).slice(1, -1),
      asciiOnly(escaped, /[^\x20-\x7e]/g),
      asciiOnly(escaped, /[^\x20-\x7e]|[<>&']/g),
    ],
    ...[units.map((unit) => `\\u${unit}`).join(''), units.map((unit) => `\\u${unit.toUpperCase()}`).join('')],
    ...[xmlEscaped(secret), xmlEscaped(secret).replaceAll("'", '&#39;'), xmlEscaped(secret).replaceAll("'", '&apos;')],
    ...[[...secret].join('\0'), [...secret].join('\\u0000')],
  ]
  const base64 = [plain, Buffer.from(secret, 'utf16le')].flatMap(base64Forms)
  return [...new Set([...spellings, ...base64])]
}

/** Returns the bytes that a secret encodes in base64 or hexadecimal: a key may be stored undecoded elsewhere. */
export function keysIn(secret: string): readonly Buffer[] {
  const hex = /^(?:[0-9a-f]{2}){12,}$/i.test(secret) ? [Buffer.from(secret, 'hex')] : []
  const base64 = /^[\w+/-]{16,}={0,2}$/.test(secret) ? [Buffer.from(secret, 'base64')] : []
  return [...hex, ...base64]
}

/** Returns the base64 of bytes in the middle of others, at each alignment: only the characters that depend on nothing but these bytes. */
function base64Forms(bytes: Buffer): readonly string[] {
  return [0, 1, 2].flatMap((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    const own = encoded.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6))
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

const lowerEscapes = (text: string) => text.replace(/%[0-9A-F]{2}/g, (triplet) => triplet.toLowerCase())

const asciiOnly = (text: string, others: RegExp) =>
  text.replace(others, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)

const xmlEscaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
