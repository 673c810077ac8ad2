import { foldDigits, foldName } from './fold.ts'

/**
 * How much a name says of its value: `strong` makes everything secret that lies below it as well (`credentials: {…}`),
 * `weak` its own value alone (`auth: …`).
 */
export type KeyKind = 'strong' | 'weak' | undefined

/** Words that make a name strong, wherever in it they stand. */
const strongWords = new Set(
  `password passwords passwd passwds passphrase passphrases passcode passcodes pwd pwds pswd passwort kennwort
  motdepasse contrasena senha wachtwoord secret secrets token tokens credential credentials creds apikey apikeys
  accesskey accesskeys secretkey privatekey privkey authkey authtoken accesstoken refreshtoken idtoken
  bearertoken clientsecret authorization cookie cookies mnemonic seedphrase keystore truststore htpasswd pgpassword mysqlpwd
  pincode otp totp cvv cvc パスワード 暗証番号 秘密鍵 密码 密碼 비밀번호`.split(/\s+/),
)

/** Words that make a name weak when it ends in them, as it is or with one of {@link tails} behind. */
const weakWords = new Set(`pass pin auth cred jwt bearer sig signature salt pepper session sessionid sid pat hmac psk dsn_password sas`.split(/\s+/))

/** What may come before `key` or `keys` to make it one that opens something. */
const keyOwners = new Set(
  `api access private secret auth account storage shared encryption encrypt decryption master signing sign ssh deploy
  service webhook hmac aes rsa ecdsa des license licence admin root server client app application consumer subscription host
  function gpg pgp wireguard wg preshared psk tls ssl session cookie jwt security integration write read ingest
  ingestion user merchant project bot db database redis rediss s3 aws gcp azure openai stripe sentry datadog
  algolia sendgrid mailgun twilio maps`.split(/\s+/),
)

/** What may follow a weak word or a key without making it something else. */
const tails = new Set('value values data base64 b64 hex raw plain text string str old new current previous prod production dev staging test default id'.split(' '))

/** Parts of names that hold a strong word written in one with others: `dbpassword`, `mysecretvalue`. */
const strongParts =
  /passw(?:or)?d|passphrase|passcode|secret|token|credential|apikey|accesskey|privatekey|authkey|signingkey|encryptionkey|masterkey|dbpwd|userpwd|pwd$/

/** Names that hold such words and mean something else: counts, rules, addresses of none, code. */
const harmless =
  /^(?:(?:max|min|num|number_of|total|input|output|prompt|completion|context|cached|reasoning|used|avg|mean)_(?:[a-z]+_)*tokens?|tokens?_(?:count|counts|limit|limits|per_[a-z]+|type|types|budget|length|size|usage|ttl|expiry|expires|lifetime)|(?:pre_?)?tokeni[sz](?:e|ed|er|ers|ing|ation)(?:_[a-z]+)*|(?:password|passwd|passphrase|secret|token|key|pin)_(?:policy|policies|min|max|length|strength|rules?|required|enabled|expiry|expires|ttl|rotation|age|days|min_length|max_length|reset_(?:enabled|timeout))|(?:has|is|use|uses|need|needs|require|requires|allow|show|hide|enable|enabled|disable|forgot)_(?:[a-z]+_)*(?:password|secret|token|pin|auth|passphrase|credentials?)s?|secretary|secretariat|(?:public|primary|foreign|sort|partition|hash|range|cache|object|row|map|index|translation|i18n|group|unique|hot|short_?cut|arrow|shift|ctrl|meta|enter|escape|tab)_keys?|secret_?names?|token_(?:endpoint|uri)|pass_?(?:through|ed|ing|es|age|ive|ively)?_?(?:count|rate|threshold|through)?s?|(?:by|com|tres|sur|under|over|tres)pass(?:es|ed)?)$/

const known = new Map<string, KeyKind>()

/**
 * What a name says of its value. The name is read as a person would: in any case and style (`dbPassword`, `DB-PASS`,
 * `API.KEY`, `x_token_url`), with look-alike letters, with digits for letters.
 */
export function kindOfKey(name: string): KeyKind {
  const remembered = known.get(name)
  if (remembered !== undefined || known.has(name)) return remembered
  const folded = foldName(name)
  const kind = kindOfWords(wordsOf(folded)) ?? kindOfLeet(folded)
  // Names come from files, which anybody can make up.
  if (known.size >= 5000) known.clear()
  known.set(name, kind)
  return kind
}

/** Only strong words are looked for in digits that stand for letters: `s3` is a name, and `md5` is not `mds`. */
function kindOfLeet(folded: string): KeyKind {
  if (!/[0134578@$!]/.test(folded) || !/[A-Za-z]/.test(folded)) return undefined
  return kindOfWords(wordsOf(foldDigits(folded))) === 'strong' ? 'strong' : undefined
}

/** The words of a name, in lower case: `dbPassword`, `DB_PASSWORD`, `db.password`, `XMLToken2`. */
function wordsOf(name: string): readonly string[] {
  return name
    .replace(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}@$!]+/u)
    .filter((word) => word !== '')
}

function kindOfWords(words: readonly string[]): KeyKind {
  if (words.length === 0 || harmless.test(words.join('_'))) return undefined
  if (words.some((word) => strongWords.has(word) || strongWords.has(word.replace(/\d+$/, '')))) return 'strong'
  const pairs = words.map((word, i) => `${words[i - 1] ?? ''}${word}`)
  if (pairs.some((pair, i) => i > 0 && strongWords.has(pair))) return 'strong'
  const last = lastWord(words)
  const word = words[last]?.replace(/\d+$/, '')
  const owner = words[last - 1]
  if (word === 'key' || word === 'keys') return owner !== undefined && keyOwners.has(owner) ? 'strong' : undefined
  if (words.some((part) => !/^(?:de|en)?tokeni[sz]|^secretar/.test(part) && strongParts.test(part))) return 'strong'
  if (strongParts.test(words.join('')) && words.every((part) => part.length <= 3)) return 'strong'
  return word !== undefined && weakWords.has(word) ? 'weak' : undefined
}

/** The last word that says what it is: that of `api_key_2`, `authBase64` is `key`, `auth`. */
function lastWord(words: readonly string[]): number {
  let last = words.length - 1
  while (last > 0 && (tails.has(words[last] ?? '') || /^\d+$/.test(words[last] ?? ''))) last--
  return last
}
