/** Runs of letters and digits, and the signs that base64 and tokens have. */
const run = /[A-Za-z0-9+/_=~.-]+/g

/** What looks random and is no secret: UUIDs, digests by their length, integrity fields, versions and dates, addresses. */
const harmless =
  /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-fA-F]{7,12}|[0-9a-fA-F]{32}|[0-9a-fA-F]{40}|[0-9a-fA-F]{56}|[0-9a-fA-F]{64}|[0-9a-fA-F]{96}|[0-9a-fA-F]{128}|sha(?:1|224|256|384|512)-[A-Za-z0-9+/=]+|v?\d+(?:\.\d+)+[\w.+-]*|\d{4}-\d\d-\d\dT[\d:.+Z-]+|0x[0-9a-fA-F]{40})$/i

/**
 * Whether a value looks like a random token: at least 20 characters without a space in which letters of either case and
 * digits change places as only chance has them do. Words, however joined, paths, UUIDs and digests do not.
 */
export function looksOpaque(value: string): boolean {
  if (value.length < 16 || value.length > 100_000) return false
  if (/^data:|^[a-z][\w+.-]*:\/\/|^\w+@\w/i.test(value)) return false
  for (const [found] of value.matchAll(run)) if (isOpaqueRun(found)) return true
  return false
}

function isOpaqueRun(text: string): boolean {
  if (text.length < 20 || harmless.test(text)) return false
  // Random text has no place for a word; a path or a name is made of them.
  return text.split(/[/._=~+-]+/).some((part) => part.length >= 12 && changes(part) >= 0.3 && !harmless.test(part))
    || (changes(text) >= 0.4 && !/[a-z]{5}|[A-Z]{5}/.test(text) && /\d/.test(text) && /[A-Za-z]/.test(text) && !/^[\d.:/-]+$/.test(text))
}

/** How often neighbours are of another kind (lower, upper, digit, sign), from 0 to 1. */
function changes(text: string): number {
  let count = 0
  for (let i = 1; i < text.length; i++) if (kind(text.charCodeAt(i)) !== kind(text.charCodeAt(i - 1))) count++
  return count / Math.max(1, text.length - 1)
}

function kind(code: number): number {
  if (code >= 97 && code <= 122) return 0
  if (code >= 65 && code <= 90) return 1
  return code >= 48 && code <= 57 ? 2 : 3
}
