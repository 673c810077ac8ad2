import { redactedMark } from '../core/scrub.ts'
import { looksLikeRandomToken } from './keys.ts'

/** A reference to a value that is kept elsewhere, without a default: `${NAME}`, `$NAME`, `%NAME%`, `{{ name }}`, `<name>`. */
export const referencePattern =
  /^(?:\$\{(?:[\w.-]+|[\w.-]*:?-|(?:[a-z][a-z\d]*|ENV):(?![-=+])[\w.:/-]+|[\w.-]+:?\?[^{}]*)\}|\$\([\w.-]+\)|\$[A-Za-z_]\w*|%[A-Za-z_]\w*%|\{\{-?[^{}]*\}\}|\$\{\{[^{}]*\}\}|<[A-Za-z][\w -]*>)$/

/** Values that are not secret, whatever their name is: words for nothing, placeholders, package versions. */
const nothing =
  /^(?:true|false|null|nil|none|undefined|yes|no|on|off|~|n\/a|-+|\*+|x+|\.{3,}|…|[\^~<>=v]{0,3}\d+\.\d+\.\d+(?:-[a-z]+(?:\.\d+)*)?)$/i

export const authSchemePattern =
  /^(?:bearer|basic|digest|token|apikey|api-key|negotiate|ntlm|hawk|aws4-hmac-sha256|hoba|mutual|vapid|dpop|splunk|key)\s+/i

const plainName = String.raw`[A-Za-z_$][\w$]{0,40}`
/** A placeholder for a value that code inserts, without a literal: `${token}`, `{self.key}`, `${await tokenOf(user)}`, `{0}`, `%s`. */
const inserted = new RegExp(
  String.raw`^(?:\$?\{(?:await )?${plainName}(?:(?:\?\.|\.|!\.)${plainName}|\((?:${plainName}(?:, ?${plainName}){0,4})?\)){0,6}!?\}|\{\d?\}|%[sv@])$`,
)

/** Whether a value is not a secret: empty, a word for nothing, a reference, a placeholder, or already redacted. */
export function isHarmless(value: string): boolean {
  if (value === '' || value.startsWith(redactedMark)) return true
  if (value.length >= 200) return false
  if (nothing.test(value) || referencePattern.test(value)) return true
  const bare = value.replace(authSchemePattern, '')
  // Without a scheme before it, a text such as `{0}` may be the secret itself.
  return (bare !== value || value.startsWith('$')) && isPlaceholder(bare)
}

export function isPlaceholder(credentials: string): boolean {
  if (credentials.length >= 200 || looksLikeRandomToken(credentials)) return false
  return referencePattern.test(credentials) || inserted.test(credentials)
}
