import { randomBytes } from 'node:crypto'

/** Finds planted secrets in bytes, in any encoding (oracle O1). */
export interface CanaryWatch {
  /** Creates a secret. All secrets of one watch have the same beginning, so that one search finds any of them. */
  plant(label: string): string
  /** Searches the next bytes of a stream, whose chunks may be split anywhere. */
  see(bytes: Uint8Array, stream: string): void
  /** The leaks found so far, as `stream: form`. */
  readonly leaks: readonly string[]
}

export function createCanaryWatch(): CanaryWatch {
  const prefix = `cnry${randomBytes(10).toString('hex')}`
  const needles = formsOf(prefix)
  const longest = Math.max(...needles.map(({ bytes }) => bytes.length))
  const tails = new Map<string, Buffer>()
  const leaks: string[] = []
  return {
    plant: (label) => `${prefix}-${label}`,
    see: (bytes, stream) => {
      const text = Buffer.concat([tails.get(stream) ?? Buffer.alloc(0), bytes])
      for (const { form, bytes: needle } of needles) {
        const at = text.indexOf(needle)
        if (at === -1) continue
        leaks.push(
          `${stream}: ${form}: ${text.subarray(Math.max(0, at - 80), at + needle.length + 80).toString('latin1')}`,
        )
      }
      tails.set(stream, Buffer.from(text.subarray(Math.max(0, text.length - longest + 1))))
    },
    leaks,
  }
}

interface Needle {
  readonly form: string
  readonly bytes: Buffer
}

/** Returns every encoding of a text that the search looks for. */
export function formsOf(text: string): readonly Needle[] {
  const plain = Buffer.from(text)
  const wide = Buffer.from(text, 'utf16le')
  const hex = plain.toString('hex')
  const percent = [...plain].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
  const json = [...plain].map((byte) => `\\u00${byte.toString(16).padStart(2, '0')}`).join('')
  const texts: readonly (readonly [string, string])[] = [
    ['hex', hex],
    ['HEX', hex.toUpperCase()],
    ['percent-encoded', percent],
    ['PERCENT-ENCODED', percent.toUpperCase()],
    ['JSON-escaped', json],
    ['JSON-ESCAPED', json.replace(/[a-f]/g, (digit) => digit.toUpperCase())],
    ['upper case', text.toUpperCase()],
    ['UTF-16 in JSON', [...text].join('\\u0000')],
    ...base64Forms('base64', plain),
    ...base64Forms('base64 of UTF-16LE', wide),
  ]
  return [
    { form: 'raw', bytes: plain },
    { form: 'UTF-16LE', bytes: wide },
    { form: 'UTF-16BE', bytes: Buffer.from(wide).swap16() },
    ...texts.map(([form, spelled]) => ({ form, bytes: Buffer.from(spelled) })),
  ]
}

/** Returns the base64 forms of bytes within other bytes, one for each of the three alignments. */
function base64Forms(form: string, bytes: Buffer): (readonly [string, string])[] {
  return [0, 1, 2].flatMap((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    // Only the characters that depend on these bytes alone.
    const own = encoded.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6))
    const url = own.replaceAll('+', '-').replaceAll('/', '_')
    const named = [`${form}, shifted by ${shift}`, own] as const
    return url === own ? [named] : [named, [`${form}url, shifted by ${shift}`, url] as const]
  })
}
