import { kindOfKey } from './keys.ts'
import type { Span } from './spans.ts'

/** Characters that end a URL in a text. */
const boundary = /[\s"'`<>\\]/

/** A reference to a value that is kept elsewhere, without a default: `${NAME}`, `$NAME`, `%NAME%`, `{{ name }}`, `<name>`. */
export const reference =
  /^(?:\$\{[\w.:/-]+\}|\$\([\w.-]+\)|\$[A-Za-z_]\w*|%[A-Za-z_]\w*%|\{\{-?[^{}]*\}\}|\$\{\{[^{}]*\}\}|<[A-Za-z][\w -]*>)$/

/** Parameters of a query whose values are secret though their names alone do not say so. */
const queryNames = new Set(
  'key sig signature code auth x-amz-signature x-amz-credential x-goog-signature x-goog-credential x-ms-signature hash hmac'.split(
    ' ',
  ),
)

/** Services whose addresses are secret behind the host: who knows one may use it. */
const hooks =
  /(hooks\.slack\.com\/(?:services|workflows|triggers)\/|discord(?:app)?\.com\/api\/(?:v\d+\/)?webhooks\/|outlook\.office(?:365)?\.com\/webhook\/|\.webhook\.office\.com\/webhookb2\/|hooks\.zapier\.com\/hooks\/|maker\.ifttt\.com\/trigger\/|api\.telegram\.org\/(?:file\/)?bot|chat\.googleapis\.com\/v1\/spaces\/|\.logic\.azure\.com(?::\d+)?\/workflows\/|open\.(?:feishu|larksuite)\.(?:cn|com)\/open-apis\/bot\/|hook\.[a-z0-9.]{0,20}make\.com\/|sentry\.io\/api\/hooks\/|hooks\.[a-z0-9-]{1,60}\.[a-z]{2,10}\/)[^\s"'`<>\\?#]+/gi

/**
 * Returns the secrets in URLs and similar connection strings: the user information, query values with secret names, the path of a
 * webhook. The host stays.
 */
export function findUrlSecrets(text: string): readonly Span[] {
  if (!text.includes('://') && !text.includes('?') && !text.includes('thin:')) return []
  return [...findUserinfo(text), ...findQueries(text), ...findHooks(text), ...findOracle(text)]
}

function findUserinfo(text: string): readonly Span[] {
  const found: Span[] = []
  // Many schemes in one run of characters share its end, so that it is looked for once.
  let runEnd = 0
  let lastAt = -1
  let until = 0
  for (let at = text.indexOf('://'); at !== -1; at = text.indexOf('://', at + 3)) {
    const start = at + 3
    if (start < until) continue
    if (start >= runEnd) {
      runEnd = endOfRun(text, start)
      lastAt = start + text.slice(start, runEnd).lastIndexOf('@')
    }
    if (lastAt <= start || !/[A-Za-z0-9+.-]/.test(text[at - 1] ?? '')) continue
    const end = endOfUserinfo(text, start, runEnd, lastAt)
    if (end === undefined || !isSecretUserinfo(text.slice(start, end), text.slice(Math.max(0, at - 12), at))) continue
    found.push({ start, end })
    until = end
  }
  return found
}

function endOfRun(text: string, start: number): number {
  let end = start
  while (end < text.length && !boundary.test(text[end] ?? '')) end++
  return end
}

/** Returns the index of the `@` of the user information; `undefined` when there is none. */
function endOfUserinfo(text: string, start: number, runEnd: number, lastAt: number): number | undefined {
  let slash = start
  while (slash < runEnd && !/[/?#]/.test(text[slash] ?? '')) slash++
  const at = text.slice(start, slash).lastIndexOf('@')
  if (at > 0) return start + at
  // An unescaped slash, `?` or `#` in a password: then the text before it is not a host with a port.
  const colon = text.slice(start, slash).indexOf(':')
  if (colon === -1 || lastAt < slash) return undefined
  return /^\d{0,5}$/.test(text.slice(start + colon + 1, slash)) ? undefined : lastAt
}

function isSecretUserinfo(userinfo: string, before: string): boolean {
  const parts = userinfo.split(':')
  if (parts.every((part) => part === '' || reference.test(part))) return false
  if (parts.length > 1) return parts.slice(1).join(':') !== '' || (parts[0]?.length ?? 0) >= 16
  // A name alone is a token where it is long, or for the web, where names alone have no use but as one.
  return userinfo.length >= 20 || (/https?$/i.test(before) && userinfo.length >= 12 && /\d/.test(userinfo))
}

function findQueries(text: string): readonly Span[] {
  const found: Span[] = []
  for (const match of text.matchAll(/(?<=[?&;])([\w.[\]-]{1,64})=([^&\s"'`<>\\#;]{4,})/g)) {
    const [, name = '', value = ''] = match
    if (kindOfKey(name) === undefined && !queryNames.has(name.toLowerCase())) continue
    if (queryNames.has(name.toLowerCase()) && value.length < 16) continue
    if (reference.test(value)) continue
    const start = match.index + name.length + 1
    found.push({ start, end: start + value.length })
  }
  return found
}

function findHooks(text: string): readonly Span[] {
  return Array.from(text.matchAll(hooks), (match) => ({
    start: match.index + (match[1]?.length ?? 0),
    end: match.index + match[0].length,
  }))
}

/** `jdbc:oracle:thin:user/password@host`. */
function findOracle(text: string): readonly Span[] {
  return Array.from(text.matchAll(/(?<=:(?:thin|oci8?):)[^\s"'`/@:]{1,128}\/[^\s"'`@]{1,256}(?=@)/g), (match) => ({
    start: match.index,
    end: match.index + match[0].length,
  }))
}
