import { lazyPattern } from '../core/kit/matching.ts'
import { foldName } from './decoded.ts'

/**
 * The strength of a secret name. `strong`: what is below the name is secret, too (`credentials: {…}`). `weak`: its own value is
 * (`auth: …`), and in free text at most if it looks like a password. Undefined: the name is not that of a secret.
 */
export type NameStrength = 'strong' | 'weak' | undefined

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** Words that make a name strong, at any position in it. */
const strongWords = words(`
  password passwords passwd passwds passphrase passphrases passcode passcodes pwd pwds pswd secret secrets token tokens
  credential credentials creds apikey apikeys accesskey accesskeys secretkey privatekey privkey authkey authtoken
  accesstoken refreshtoken idtoken clientsecret seedphrase htpasswd pincode passwort kennwort motdepasse contrasena
  requirepass masterauth bindpw rootbindpw rootpw storepass keypass senha wachtwoord
`)

let others: ReadonlySet<string> | undefined
/** Strong words in other scripts, folded like names. They are folded at the first use. */
function strongWordsOfOthers(): ReadonlySet<string> {
  others ??= new Set(['パスワード', 'パスフレーズ', '暗証番号', '秘密', '秘密鍵', '密码', '密碼'].map(foldName))
  return others
}

const isStrong = (word: string) =>
  strongWords.has(word) || (isBeyondAscii.test(word) && strongWordsOfOthers().has(word))
const isBeyondAscii = /[^\0-\x7f]/

/** Words that make a name weak if they are its last significant word. */
const weakWords = words(`
  pass pw pin auth cred authorization jwt bearer sig signature salt pepper session sessionid cookie cookies pat hmac psk sas
  otp totp cvv cvc mnemonic passe
`)

/** Words that make a following `key` a secret key. */
const keyOwners = words(`
  api access private secret auth account storage shared encryption encrypt decryption master signing sign ssh deploy
  service webhook hmac aes rsa ecdsa des license licence admin root server client app consumer subscription host function
  gpg pgp wireguard wg preshared psk tls ssl session cookie jwt security integration ingest ingestion merchant bot
  aws gcp azure s3 openai anthropic stripe sentry datadog algolia sendgrid mailgun twilio maps
`)

/** Words that may follow the significant word without changing the meaning of the name. */
const tails = words(`
  value values data base64 b64 hex raw plain text string str old new current previous prod production dev staging test
  default id
`)

const strongParts =
  /passw(?:or)?d|passphrase|passcode|secret|token|credential|apikey|accesskey|privatekey|authkey|signingkey|encryptionkey|masterkey|pwd$/

/** Names with such words that are not secrets: counts and rules, references, parsers, public keys. */
const harmless = [
  /^(?:max|min|num|number|total|input|output|prompt|completion|context|cached|reasoning|used|avg|mean)(?:_[a-z]+)*_tokens?$/,
  /^tokens?_(?:count|limit|per_[a-z]+|type|budget|length|size|usage|ttl|expiry|expires|lifetime)s?$/,
  /^(?:[a-z]+_)*(?:pre_|de)?tokeni[sz](?:e|ed|er|ers|ing|ation)(?:_[a-z]+)*$/,
  /^(?:[a-z]+_)*(?:password|passwd|passphrase|secret|token|key|pin)_(?:policy|policies|min|max|length|strength|rules?|required|enabled|expiry|expires|ttl|rotation|age|days)(?:_[a-z]+)*$/,
  /^(?:has|is|use|uses|need|needs|require|requires|allow|show|hide|enable|disable|forgot)_(?:[a-z]+_)*(?:password|secret|token|pin|auth|passphrase|credential)s?$/,
  /^(?:[a-z]+_)*(?:public|primary|foreign|sort|partition|cache|object|row|map|index|translation|group|unique|shortcut)_keys?$/,
  /^secret_?names?$|^secret_(?:key_)?refs?$|^secretar(?:y|iat)$/,
]

const strengths = new Map<string, NameStrength>()

/**
 * Returns the strength of a name, in any case and style: `dbPassword`, `DB-PASS`, `API.KEY`, `x_token_url`.
 */
export function secretNameStrength(name: string): NameStrength {
  const remembered = strengths.get(name)
  if (remembered !== undefined || strengths.has(name)) return remembered
  const kind = kindOfWords(splitNameWords(foldName(name)))
  // Anybody can make up new names, so the cache is bounded.
  if (strengths.size >= 5000) strengths.clear()
  strengths.set(name, kind)
  return kind
}

/** The words of a name, in lower case: `dbPassword`, `DB_PASSWORD`, `db.password`, `XMLToken`. */
function splitNameWords(name: string): readonly string[] {
  // In a name of only capitals or only small letters, no word begins within a run of letters.
  if (/^(?:[A-Z_.-]*|[a-z_.-]*)$/.test(name))
    return name
      .toLowerCase()
      .split(/[^a-z]/)
      .filter((word) => word !== '')
  const [end, beginning, between] = isBeyondAscii.test(name)
    ? [endOfWord(), beginningOfWord(), betweenWords()]
    : [/([a-z]|\d)([A-Z])/g, /([A-Z])([A-Z][a-z])/g, /[^A-Za-z0-9]+/]
  return name
    .replace(end, '$1 $2')
    .replace(beginning, '$1 $2')
    .toLowerCase()
    .split(between)
    .filter((word) => word !== '')
}

const endOfWord = lazyPattern(String.raw`(\p{Ll}|\d)(\p{Lu})`, 'gu')
const beginningOfWord = lazyPattern(String.raw`(\p{Lu})(\p{Lu}\p{Ll})`, 'gu')
const betweenWords = lazyPattern(String.raw`[^\p{L}\p{N}]+`, 'u')

function kindOfWords(parts: readonly string[]): NameStrength {
  const kind = kindByWords(parts)
  if (kind === undefined) return undefined
  const joined = parts.join('_')
  // A fast path: a harmless name of one word contains `tokeni`, or begins with `secret`.
  if (parts.length === 1 && !/tokeni|^secret/.test(joined)) return kind
  return harmless.some((pattern) => pattern.test(joined)) ? undefined : kind
}

function kindByWords(parts: readonly string[]): NameStrength {
  const bare = parts.map((part) => part.replace(/\d+$/, ''))
  if (bare.some((word, i) => isStrong(word) || isStrong(`${bare[i - 1] ?? ''}${word}`))) return 'strong'
  if (parts.some((part) => !/tokeni[sz]|secretar/.test(part) && strongParts.test(part))) return 'strong'
  // `P_A_S_S_W_O_R_D` and `pass-word` are made of pieces.
  if (parts.every((part) => part.length <= 4) && strongParts.test(parts.join(''))) return 'strong'
  const at = bare.findLastIndex((word) => word !== '' && !tails.has(word))
  const word = bare[at] ?? ''
  if (word === 'key' || word === 'keys') return keyOwners.has(bare[at - 1] ?? '') ? 'strong' : undefined
  return weakWords.has(word) ? 'weak' : undefined
}

const runs = /[A-Za-z0-9+/_=~.-]{20,}/g

/** Random-looking values that are not secret: UUIDs, digests and object ids by their length, integrity fields, times. */
const harmlessRun =
  /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:0x)?(?:[0-9a-f]{24}|[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})|sha(?:1|224|256|384|512)-[a-z0-9+/=]+|\d{4}-\d\d-\d\dT[\d:.+Z-]+)$/i

const wordLike = /[A-Z]?[a-z]{3,}|[A-Z]{4,}|\d{4,}/g

/**
 * Whether a value contains a run of 20 characters or more that looks random: with hardly a word in it, or with digits in several places.
 * UUIDs and hexadecimal digests do not count. False for a value that begins like a URL.
 */
export function looksLikeRandomToken(value: string): boolean {
  if (value.length < 20 || value.length > 100_000 || /^data:|^[a-z][\w+.-]*:\/\//i.test(value)) return false
  for (const [run] of value.matchAll(runs)) if (isOpaque(run)) return true
  return false
}

function isOpaque(run: string): boolean {
  if (harmlessRun.test(run) || !/[A-Za-z]/.test(run) || !/[0-9A-Z]/.test(run)) return false
  if (/[A-Z]/.test(run) && /[a-z]/.test(run) && /\d/.test(run) && unworded(run) >= 0.6) return true
  return run.split(/[/._=~+-]+/).some((part) => part.length >= 16 && !harmlessRun.test(part) && isOpaquePart(part))
}

function isOpaquePart(part: string): boolean {
  const digits = part.match(/\d+/g)?.length ?? 0
  if (digits >= 3 && /[A-Za-z]/.test(part)) return true
  return /[A-Z]/.test(part) && /[a-z]/.test(part) && unworded(part) >= 0.55
}

function unworded(text: string): number {
  return text.replace(wordLike, '').length / text.length
}
