import type { Span } from '../core/kit/sorted.ts'
import { secretNameStrength } from './keys.ts'
import { isHarmless, isPlaceholder, referencePattern } from './references.ts'

const boundary = /[\s"'`<>\\]/

/** Parameters of a query whose values are secret though their names alone do not say so. */
const queryNames = new Set(
  'key sig signature code auth x-amz-signature x-amz-credential x-goog-signature x-goog-credential x-ms-signature hash hmac'.split(
    ' ',
  ),
)

/** Services whose URLs are secret after the host: anybody who knows one can use it. */
const hooks =
  /(hooks\.slack\.com\/(?:services|workflows|triggers)\/|discord(?:app)?\.com\/api\/(?:v\d+\/)?webhooks\/|outlook\.office(?:365)?\.com\/webhook\/|\.webhook\.office\.com\/webhookb2\/|hooks\.zapier\.com\/hooks\/|maker\.ifttt\.com\/trigger\/|api\.telegram\.org\/(?:file\/)?bot|chat\.googleapis\.com\/v1\/spaces\/|\.logic\.azure\.com(?::\d+)?\/workflows\/|open\.(?:feishu|larksuite)\.(?:cn|com)\/open-apis\/bot\/|hook\.[a-z0-9.]{0,20}make\.com\/|sentry\.io\/api\/hooks\/|hooks\.[a-z0-9-]{1,60}\.[a-z]{2,10}\/)[^\s"'`<>\\?#]+/gi

/**
 * Returns the secrets in URLs and connection strings: the user information, query values with secret names, the path of a webhook, the
 * password of a data source.
 */
export function findUrlSecrets(text: string): readonly Span[] {
  const isUrl = text.includes('://') || text.includes('?') || text.includes('thin:')
  const inUrls = isUrl ? [...findUserinfo(text), ...findQueries(text), ...findHooks(text)] : []
  return [...inUrls, ...findWithoutScheme(text), ...findDataSources(text)]
}

function findUserinfo(text: string): readonly Span[] {
  const spans: Span[] = []
  // Several schemes in one run of characters have the same end, which is searched once.
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
    spans.push({ start, end })
    until = end
  }
  return spans
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
  // An unescaped slash, `?` or `#` in a password: the text before it is not a host with a port.
  const colon = text.slice(start, slash).indexOf(':')
  if (colon === -1 || lastAt < slash) return undefined
  return /^\d{0,5}$/.test(text.slice(start + colon + 1, slash)) ? undefined : lastAt
}

function isSecretUserinfo(userinfo: string, before: string): boolean {
  const parts = userinfo.split(':')
  if (parts.every((part) => part === '' || referencePattern.test(part))) return false
  if (parts.length > 1) return parts.slice(1).join(':') !== '' || (parts[0]?.length ?? 0) >= 16
  // A user name without a password is a token if it is long. In a URL of the web a shorter one with a digit is enough.
  return userinfo.length >= 20 || (/https?$/i.test(before) && userinfo.length >= 12 && /\d/.test(userinfo))
}

function findQueries(text: string): readonly Span[] {
  const spans: Span[] = []
  for (const match of text.matchAll(/(?<=[?&;])([\w.[\]-]{1,64})=([^&\s"'`<>\\#;]{4,})/g)) {
    const [, name = '', value = ''] = match
    if (secretNameStrength(name) === undefined && !queryNames.has(name.toLowerCase())) continue
    if (queryNames.has(name.toLowerCase()) && value.length < 16) continue
    if (referencePattern.test(value)) continue
    const start = match.index + name.length + 1
    spans.push({ start, end: start + value.length })
  }
  return spans
}

function findHooks(text: string): readonly Span[] {
  return Array.from(text.matchAll(hooks), (match) => ({
    start: match.index + (match[1]?.length ?? 0),
    end: match.index + match[0].length,
  }))
}

/** Passwords before an at sign without `://`. Group: `value`. */
const withoutScheme: readonly RegExp[] = [
  // jdbc:oracle:thin:user/password@host
  /(?<=:(?:thin|oci8?):)(?<value>[^\s"'`/@:]{1,128}\/[^\s"'`@]{1,256})(?=@)/g,
  // sqlplus user/password@host
  /\b(?:sqlplus|sqlldr|expdp|impdp|rman)\s(?:[^\n;|]{0,80}?\s)?["']?[\w$#]{1,64}\/(?<value>[^\s"'@]{1,128})(?=@)/g,
  // Go: user:password@tcp(host)/db, user:password@/db
  /(?<![\w.@-])[\w.%+-]{1,64}:(?<value>[^\s"'`]{1,256})(?=@[a-z][a-z\d+-]{1,30}\()/g,
  /(?<=^|["'`=\s])[\w.-]{1,64}:(?<value>[^\s"'`@/:]{1,256})(?=@\/[\w-]+(?:[?"'`\s]|$))/gm,
  // user:password@host.example:8080
  /(?<![\w.@:/-])[\w.+-]{1,64}:(?<value>(?=[^\s@]*\d)(?=[^\s@]*[A-Za-z])[^\s"'`@/:]{6,128})(?=@(?:[\w-]+(?:\.[\w-]+)+|localhost):\d{2,5}\b)/g,
]

function findWithoutScheme(text: string): readonly Span[] {
  if (!/\S@[\w(/[-]/.test(text)) return []
  const spans: Span[] = []
  for (const pattern of withoutScheme)
    for (const { 0: whole, index, groups = {} } of text.matchAll(pattern)) {
      const { value = '' } = groups
      if (!isHarmless(value) && !isPlaceholder(value))
        spans.push({ start: index + whole.length - value.length, end: index + whole.length })
    }
  return spans
}

/** A password in a connection string: in braces or quotes as ODBC and ADO write it, or up to the next sign. */
const dataSourceSecret =
  /(?<=[;"'`\s{(]|^)(?:pwd|password)\s{0,4}=\s{0,4}(?:\{(?<braced>(?:[^}\r\n]|\}\}){1,256})\}(?=[;"'`\s]|$)|"(?<double>[^"\r\n]{1,256})"|'(?<single>[^'\r\n]{1,256})'|(?<bare>(?:(?!\\[nrt])[^;\s"'`<>{}]|\$?\{[^{}\s]{0,64}\}){1,256}))/gim

const dataSourceMember =
  /(?:^|[;\s"'`{(])(?:server|host|hostaddr|data source|addr|address|uid|user id|user|username|driver|database|initial catalog|dbname|dsn|provider|endpoint)\s{0,4}=/i

/** A driver in braces that cannot be a name in code. It shows that braces in the connection string quote values, and are no placeholders. */
const quotesInBraces = /driver\s{0,4}=\s{0,4}\{[^{}\n]{0,100}[^\w.{}\n][^{}\n]{0,100}\}/i

/** Whether a text in braces is a name in code, so that the braces are a placeholder for its value. */
function isInserted(name: string): boolean {
  return isPlaceholder(`{${name}}`) && (!/[a-z]\d|\d[a-z]/i.test(name) || secretNameStrength(name) !== undefined)
}

/** The longest part of a connection string that is examined before and after its password, in characters. */
const maxDataSource = 300

/** Finds passwords in connection strings of ODBC, ADO and libpq: `Server=…;Pwd={…}`, `host=… password=…`. */
function findDataSources(text: string): readonly Span[] {
  if (!/(?:pwd|password)\s{0,4}=/i.test(text)) return []
  const spans: Span[] = []
  for (const { 0: whole, index, groups = {} } of text.matchAll(dataSourceSecret)) {
    const { braced, double, single, bare } = groups
    const value = braced ?? double ?? single ?? bare ?? ''
    const end = index + whole.length - (bare === undefined ? 1 : 0)
    const [before = ''] = /[^\n]*$/.exec(text.slice(Math.max(0, index - maxDataSource), index)) ?? []
    const [after = ''] = /^[^\n]*/.exec(text.slice(end, end + maxDataSource)) ?? []
    if (!dataSourceMember.test(before) && !dataSourceMember.test(after)) continue
    if (isHarmless(value) || isPlaceholder(value)) continue
    if (braced !== undefined && isInserted(braced) && !quotesInBraces.test(before + after)) continue
    if (/^[A-Za-z_ .-]+$/.test(value) && secretNameStrength(value) !== undefined) continue
    spans.push({ start: end - value.length, end, key: index })
  }
  return spans
}
