import type { Content } from '../../core/provider.ts'
import { decodeBytes } from '../../wrap/encoding/decode.ts'
import { detectEncoding } from '../../wrap/encoding/detect.ts'

/** Characters that hide what stands beside them, or do something to a terminal: controls, and those that turn text round. */
const hidden = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/gu

/** Names, messages and paths of strangers as one line: what would hide or move something is shown as `\u{…}`. */
export function oneLine(text: string, most = 500): string {
  const shown = text.length > most ? `${text.slice(0, most)}…` : text
  return shown.toWellFormed().replace(hidden, escapeCharacter)
}

/** The same for text of several lines: line feeds and tabs stay. */
export function manyLines(text: string): string {
  const lines = text.replace(/\r\n/g, '\n').toWellFormed()
  return lines.replace(hidden, (c) => (c === '\n' || c === '\t' ? c : escapeCharacter(c)))
}

function escapeCharacter(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
}

/** How ids are written where a full one is not needed. Twelve digits are one commit in practice, and can be read by. */
export function shortId(oid: string): string {
  return oid.slice(0, 12)
}

/** The decoded text of a process, up to its last whole line where it was cut. */
export function wholeLines({ bytes, cut }: { readonly bytes: Buffer; readonly cut: boolean }): string {
  return (cut ? bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1) : bytes).toString('utf8')
}

/** Lines of a file, which need not be in UTF-8, as text: in the encoding that they are found to be in. */
export function decodeLines(bytes: Uint8Array): string {
  return decodeBytes(bytes, detectEncoding(bytes) ?? 'utf-8') ?? ''
}

/** What a model reads where something was left out. */
export function cutMark(what: string): string {
  return `[cut: ${what}]`
}

/** A text made here, as the content of its resource. */
export interface Page {
  readonly text: string
  readonly cut: boolean
  readonly version?: string
  readonly immutable?: boolean
}

export const pageType = 'text/plain'

export function contentOf({ text, cut, version, immutable }: Page): Content {
  return {
    text,
    mimeType: pageType,
    ...(version === undefined ? {} : { version }),
    ...(immutable === true ? { immutable } : {}),
    ...(cut ? { meta: { 'dev.hikidashi/truncated': true } } : {}),
  }
}
