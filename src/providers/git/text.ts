import { defined } from '../../core/kit/object.ts'
import type { Content } from '../../core/provider.ts'
import { decodeBytes } from '../../text/encoding/decode.ts'
import { detectEncoding } from '../../text/encoding/detect.ts'

/** Characters that hide adjacent text or control a terminal: control characters, and those that change the writing direction. */
const hidden = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/gu

/** Formats untrusted names, messages and paths as one line: hidden and direction-changing characters become `\u{…}`. */
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

/** Abbreviates an id for display. Twelve digits identify a commit in practice, and can be used in reads. */
export function shortId(oid: string): string {
  return oid.slice(0, 12)
}

/** Decodes the output of a process, up to its last whole line if it was cut. */
export function wholeLines({ bytes, cut }: { readonly bytes: Buffer; readonly cut: boolean }): string {
  return (cut ? bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1) : bytes).toString('utf8')
}

/** Decodes lines of a file in their detected encoding. */
export function decodeLines(bytes: Uint8Array): string {
  return decodeBytes(bytes, detectEncoding(bytes) ?? 'utf-8') ?? ''
}

/** Returns the mark that tells a model that something was left out. */
export function cutMark(what: string): string {
  return `[cut: ${what}]`
}

/** A generated text, the content of its resource. */
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
    ...defined({ version }),
    ...(immutable === true ? { immutable } : {}),
    ...(cut ? { meta: { 'dev.hikidashi/truncated': true } } : {}),
  }
}
