/** Runs of letters and digits, and of the signs that base64 and tokens have. */
const runs = /[A-Za-z0-9+/_=~.-]{20,}/g

/** Random-looking values that are not secret: UUIDs, digests and object ids by their length, integrity fields, times. */
const harmless =
  /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:0x)?(?:[0-9a-f]{24}|[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})|sha(?:1|224|256|384|512)-[a-z0-9+/=]+|\d{4}-\d\d-\d\dT[\d:.+Z-]+)$/i

const words = /[A-Z]?[a-z]{3,}|[A-Z]{4,}|\d{4,}/g

/**
 * Whether a value looks like a random token: 20 characters or more without a space that hold hardly a word, or digits all
 * over. Names in any style, paths, addresses, UUIDs and digests in hexadecimal do not, nor what has no digits or capitals.
 */
export function looksOpaque(value: string): boolean {
  if (value.length < 20 || value.length > 100_000 || /^data:|^[a-z][\w+.-]*:\/\//i.test(value)) return false
  for (const [run] of value.matchAll(runs)) if (isOpaque(run)) return true
  return false
}

function isOpaque(run: string): boolean {
  if (harmless.test(run) || !/[A-Za-z]/.test(run) || !/[0-9A-Z]/.test(run)) return false
  if (/[A-Z]/.test(run) && /[a-z]/.test(run) && /\d/.test(run) && unworded(run) >= 0.6) return true
  return run.split(/[/._=~+-]+/).some((part) => part.length >= 16 && !harmless.test(part) && isOpaquePart(part))
}

function isOpaquePart(part: string): boolean {
  const digits = part.match(/\d+/g)?.length ?? 0
  if (digits >= 3 && /[A-Za-z]/.test(part)) return true
  return /[A-Z]/.test(part) && /[a-z]/.test(part) && unworded(part) >= 0.55
}

/** The share of a text outside of words, from 0 to 1. */
function unworded(text: string): number {
  return text.replace(words, '').length / text.length
}
