import { toUnicodeEscape } from '../../core/entry.ts'

/** Earliest and latest time that can be sent, in milliseconds since 1970: ISO 8601 writes the years 0 to 9999 without a sign. */
const [firstMs, lastMs] = [-62_167_219_200_000, 253_402_300_799_999]

/** Whether a time, in milliseconds since 1970 (UTC), can be sent. */
export function isSendableTime(time: number | undefined): time is number {
  return time !== undefined && time >= firstMs && time <= lastMs
}

/** @param time A time for which {@link isSendableTime} is true. */
export function formatIsoTime(time: number): string {
  return new Date(time).toISOString()
}

/** Returns a text for one line: control characters, and those that change the direction of text or are invisible, are escaped. */
export function escapeUnprintable(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\u{e0000}-\u{e007f}]/gu, toUnicodeEscape)
}
