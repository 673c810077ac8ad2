import { invalid } from './errors.ts'

export function isDataUri(text: string): boolean {
  return /^data:/i.test(text)
}

/**
 * Returns a `data:` URI in a canonical spelling, by which it is recognised after a host has re-encoded it: `data:` in
 * lower case, and in the rest only those characters escaped that must be. A `%` that begins no escape stands for
 * itself.
 * @throws ResourceError `invalid` for a URI without a comma.
 */
export function canonicalDataUri(text: string): string {
  const rest = text.slice('data:'.length)
  // A host that encodes everything encodes the comma too.
  const comma = (rest.includes(',') ? /,/ : /%2c/i).exec(rest)
  if (comma === null) throw invalid('A data: URI must have a comma before its data: data:text/plain,Hello.', 'uri')
  const head = encodeBytes(decodeBytes(rest.slice(0, comma.index))).replaceAll(',', '%2C')
  return `data:${head},${encodeBytes(decodeBytes(rest.slice(comma.index + comma[0].length)))}`
}

/**
 * Parses a `data:` URI (RFC 2397): `data:[<type>][;name=value]*[;base64],<data>`. Without a type it is `text/plain`, in
 * US-ASCII unless it names a charset. In base64, white space is skipped, and the final `=` may be missing.
 * @returns The media type in lower case, the parameters by their names in lower case, and the decoded data.
 * @throws ResourceError `invalid` (reason `uri`).
 */
export function parseDataUri(text: string) {
  if (!isDataUri(text)) throw invalid('A data: URI must begin with data:.', 'uri')
  const canonical = canonicalDataUri(text)
  const comma = canonical.indexOf(',')
  const [type = '', ...rest] = canonical.slice('data:'.length, comma).split(';')
  const isBase64 = rest.at(-1)?.trim().toLowerCase() === 'base64'
  const parameters = new Map((isBase64 ? rest.slice(0, -1) : rest).map(parameterOf))
  const name = decodeBytes(type).toString('latin1').trim().toLowerCase()
  if (name !== '' && !/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(name))
    throw invalid('The media type of the data: URI is malformed. Write one such as text/plain, or leave it out.', 'uri')
  const body = decodeBytes(canonical.slice(comma + 1))
  const plain = name === '' && !parameters.has('charset') ? [['charset', 'US-ASCII'] as const] : []
  return {
    mimeType: name === '' ? 'text/plain' : name,
    parameters: new Map([...parameters, ...plain]),
    bytes: isBase64 ? base64Bytes(body.toString('latin1')) : body,
  }
}

function parameterOf(text: string): readonly [name: string, value: string] {
  const [, name, value] = /^\s*([\w!#$&^.+-]+)=(.*)$/s.exec(decodeBytes(text).toString()) ?? []
  if (name === undefined || value === undefined)
    throw invalid('Between its media type and its comma, a data: URI may have only name=value, and base64 last.', 'uri')
  return [name.toLowerCase(), value.trim().replace(/^"(.*)"$/s, '$1')]
}

function base64Bytes(text: string): Buffer {
  const digits = text.replace(/[\t\n\f\r ]+/g, '')
  const [, body = '', padding = ''] = /^([A-Za-z0-9+/]*)(={0,2})$/.exec(digits) ?? []
  const isWhole = body.length % 4 !== 1 && (padding === '' || (body.length + padding.length) % 4 === 0)
  if (!isWhole || body.length + padding.length !== digits.length)
    throw invalid('The data of the data: URI is not base64.', 'uri')
  return Buffer.from(body, 'base64')
}

function decodeBytes(text: string): Buffer {
  const raw = Buffer.from(text)
  const bytes: number[] = []
  for (let at = 0; at < raw.length; at++) {
    const digits = raw[at] === 0x25 ? raw.toString('latin1', at + 1, at + 3) : ''
    if (/^[0-9A-Fa-f]{2}$/.test(digits)) {
      bytes.push(Number.parseInt(digits, 16))
      at += 2
    } else bytes.push(raw[at] ?? 0)
  }
  return Buffer.from(bytes)
}

/** Escapes the characters that a path segment may not contain (RFC 3986: `pchar`), except slashes. */
function encodeBytes(bytes: Buffer): string {
  return bytes
    .toString('latin1')
    .replace(
      /[^\w.~!$&'()*+,;=:@/-]/g,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
    )
}
