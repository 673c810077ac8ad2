import { existsSync } from 'node:fs'
import { createScrubber, minSecretLength, type Scrubber } from '../../core/scrub.ts'
import { decodeIfValid } from '../../core/uri.ts'
import { findSecretsByRules } from '../../secrets/find.ts'
import { secretNameStrength } from '../../secrets/keys.ts'

/** The secrets that this process knows. The set grows while a configuration is read; each use removes the secrets known by then. */
export interface Secrets extends Scrubber {
  add(values: Iterable<string>): void
}

/** @param collect Returns the secrets that are known from the beginning; called at the first use. */
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
    // Collecting the secrets is slow, so it is skipped for a text that is too short for one.
    scrub: (text) => (text.length < minSecretLength ? text : current().scrub(text)),
    lacks: (json) => json.every(({ length }) => length < minSecretLength) || current().lacks?.(json) === true,
    scrubBytes: (bytes) => current().scrubBytes(bytes),
    stream: () => current().stream(),
  }
}

/** The secrets that this process knows from its command line and its environment. */
export function secretsOfProcess(): Secrets {
  return createSecrets(() => [...secretsInArguments(process.argv.slice(2)), ...secretsInEnvironment(process.env)])
}

/**
 * Returns the secrets in an environment: values of variables whose names sound secret, and secrets that the detectors find in other
 * values, such as the password in a URL. Ordinary words are left out: {@link isDistinctSecret}.
 */
export function secretsInEnvironment(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  // Several variables often have the same value, such as a file of certificates. Each value is searched once.
  const within = new Map<string, readonly string[]>()
  return Object.entries(environment)
    .flatMap(([name, value = '']) => {
      const inside = within.get(value) ?? secretsWithin(value)
      within.set(value, inside)
      return isSecretWhole(name, value) ? [value, ...inside] : inside
    })
    .filter(isDistinctSecret)
}

/** Returns the secrets in the words of a command line: those in headers, and those that the detectors find. */
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
  // Without a colon, the header may be only the token.
  if (colon === -1) return [header, header.replace(/^[\w-]+\s+/, ''), header.split(/\s+/).at(-1) ?? '']
  const value = header.slice(colon + 1).trim()
  const token = value.replace(scheme, '')
  if (/^basic\s/i.test(value)) return [token, passwordIn(Buffer.from(token, 'base64').toString())]
  const cookies = /cookie/i.test(header.slice(0, colon)) ? value.split(/;\s*/).map(passwordIn) : []
  const isSecret = secretNameStrength(header.slice(0, colon)) !== undefined
  return isSecret ? [value, token, ...cookies] : secretsWithin(value)
}

/** Returns the text after the first colon or equals sign: a password after a name. */
const passwordIn = (text: string) => text.replace(/^[^:=]*[:=]/, '')

/** Whether the whole value of a variable is a secret, judged by the variable's name. A URL or the path of a file is not a secret. */
const isSecretWhole = (name: string, value: string) =>
  secretNameStrength(name) !== undefined && !/^[a-z][a-z0-9+.-]*:\/\//i.test(value) && !isFile(value)

const isFile = (value: string) => /^(?:[~./]|[A-Za-z]:\\)/.test(value) && existsSync(value)

/** Maximum length of a value that is searched for secrets, in characters. */
const maxLength = 65_536

/** Returns the secrets that the detectors find in a text. For the user information of a URL, it returns only the password. */
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
 * Whether a value differs from ordinary text. One or two plain words, a small number or the name of an algorithm do not: removing
 * `postgres` everywhere would also remove it from the documentation.
 */
export function isDistinctSecret(value: string): boolean {
  const text = value.trim()
  if (text.length < minSecretLength) return false
  if (text.length < 16 && plainWord.test(text)) return false
  return !plainNumber.test(text) && !algorithm.test(text)
}
