import { existsSync } from 'node:fs'
import { createScrubber, minSecretLength, type Scrubber } from '../../core/scrub.ts'
import { decodeIfValid } from '../../core/uri.ts'
import { findSecretsByRules } from '../../secrets/find.ts'
import { secretNameStrength } from '../../secrets/keys.ts'

/** Removes the secrets that this process knows. Later calls of `add` add to them. */
export interface Secrets extends Scrubber {
  add(values: Iterable<string>): void
}

/** @param collect Returns the secrets that are known from the beginning. It is called at the first use. */
export function createSecrets(collect: () => Iterable<string>): Secrets {
  const values = new Set<string>()
  let scrubber: Scrubber | undefined
  let isCollected = false
  const current = (): Scrubber => {
    if (!isCollected) for (const value of collect()) values.add(value)
    isCollected = true
    scrubber ??= createScrubber(values)
    return scrubber
  }
  return {
    add: (more) => {
      for (const value of more) values.add(value)
      scrubber = undefined
    },
    // Collecting the secrets is slow, so it is put off for texts that are too short for one.
    scrub: (text) => (text.length < minSecretLength ? text : current().scrub(text)),
    lacks: (json) => json.every(({ length }) => length < minSecretLength) || current().lacks?.(json) === true,
    scrubBytes: (bytes) => current().scrubBytes(bytes),
    stream: () => current().stream(),
  }
}

export function secretsOfProcess(): Secrets {
  return createSecrets(() => [...secretsInArguments(process.argv.slice(2)), ...secretsInEnvironment(process.env)])
}

/**
 * Returns values of variables whose names sound secret, and secrets that the detectors find in other values, such as
 * the password in a URL. Values that are not distinct ({@link isDistinctSecret}) are left out.
 */
export function secretsInEnvironment(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  // Several variables often have the same value, such as a file of certificates.
  const within = new Map<string, readonly string[]>()
  return Object.entries(environment)
    .flatMap(([name, value = '']) => {
      const inside = within.get(value) ?? secretsWithin(value)
      within.set(value, inside)
      return isSecretWhole(name, value) ? [value, ...inside] : inside
    })
    .filter(isDistinctSecret)
}

/** Returns likely secrets in the values of `--header`, and secrets that the detectors find in other words. */
export function secretsInArguments(words: readonly string[]): readonly string[] {
  return words
    .flatMap((word, at) => {
      const header = words[at - 1] === '--header' ? word : /^--header=(.*)/s.exec(word)?.[1]
      return header === undefined ? secretsWithin(word) : secretsInHeader(header)
    })
    .filter(isDistinctSecret)
}

const scheme = /^(?:bearer|basic|digest|token|apikey)\s+/i

function secretsInHeader(header: string): readonly string[] {
  const colon = header.indexOf(':')
  // Without a colon, the header may be a bare token.
  if (colon === -1) return [header, header.replace(/^[\w-]+\s+/, ''), header.split(/\s+/).at(-1) ?? '']
  const value = header.slice(colon + 1).trim()
  const token = value.replace(scheme, '')
  if (/^basic\s/i.test(value)) return [token, passwordIn(Buffer.from(token, 'base64').toString())]
  const cookies = /cookie/i.test(header.slice(0, colon)) ? value.split(/;\s*/).map(passwordIn) : []
  const isSecret = secretNameStrength(header.slice(0, colon)) !== undefined
  return isSecret ? [value, token, ...cookies] : secretsWithin(value)
}

const passwordIn = (text: string) => text.replace(/^[^:=]*[:=]/, '')

/** Judged by the variable's name. A URL or the path of a file is not a secret. */
const isSecretWhole = (name: string, value: string) =>
  secretNameStrength(name) !== undefined && !/^[a-z][a-z0-9+.-]*:\/\//i.test(value) && !isFile(value)

const isFile = (value: string) => /^(?:[~./]|[A-Za-z]:\\)/.test(value) && existsSync(value)

/** Maximum length of a text that is searched for secrets, in characters. */
const maxLength = 65_536

/** Of a URL with user information, only the password counts. */
function secretsWithin(text: string): readonly string[] {
  if (text.length < minSecretLength || text.length > maxLength) return []
  return findSecretsByRules(text, { path: 'value.txt' }).flatMap(({ start, end }) => {
    const secretText = text.slice(start, end)
    const isUserinfo = text.slice(0, start).endsWith('://') && secretText.includes(':')
    return isUserinfo ? [passwordIn(secretText), decodeIfValid(passwordIn(secretText))] : [secretText]
  })
}

const plainWord = /^(?:[A-Z]?[a-z]+|[A-Z]+)(?:[-_. ]?(?:[A-Z]?[a-z]+|[A-Z]+))?$/
const plainNumber = /^[\d.:_-]{1,11}$/
const algorithm =
  /^(?:hmac[-_]?)?(?:sha|md|hs|rs|es|ps|aes|rsa|ed|utf|base|argon|oauth|ipv|kv|tls|ssl|v)[-_]?\d{1,5}(?:id|i|d)?$/i

/**
 * Short plain words, short numbers and names of algorithms are not distinct: removing `postgres` everywhere would also
 * remove it from documentation.
 */
export function isDistinctSecret(value: string): boolean {
  const text = value.trim()
  if (text.length < minSecretLength) return false
  if (text.length < 16 && plainWord.test(text)) return false
  return !plainNumber.test(text) && !algorithm.test(text)
}
