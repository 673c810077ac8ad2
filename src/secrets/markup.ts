import type { Span } from '../core/kit/sorted.ts'
import { secretNameStrength } from './keys.ts'
import { isHarmless } from './references.ts'
import { type FileStyle, looksLikePassword, secretValues } from './values.ts'

/** A start tag. At most 200 quoted values and pieces of text between them are matched, so that the time stays bounded. */
const tag = /<[A-Za-z][\w:.-]{0,63}(?=\s)(?:[^<>"']{1,4096}|"[^"<]{0,65536}"|'[^'<]{0,65536}'){0,200}/g

const attribute =
  /(?<![\w:.-])(?<name>[\w:.-]{1,64})\s{0,16}=\s{0,16}(?:"(?<double>[^"]*)"|'(?<single>[^']*)'|(?<bare>[^\s"'<>=`]+))/g

/** Attributes that name the value of the element. */
const names = /^(?:name|id|key|type|property|itemprop|autocomplete|http-equiv)$/i
/** Attributes that contain the value. */
const values = /^(?:value|content|default|val|data|data-value|defaultvalue)$/i

/**
 * Finds the values of elements of HTML and XML whose other attributes have the name of a secret, in any order and with others between:
 * `<input type="password" value="…">`, `<add value="…" key="ApiKey"/>`.
 */
export function findAttributeSecrets(text: string, style: FileStyle): readonly Span[] {
  if (!text.includes('<')) return []
  const spans: Span[] = []
  for (const { 0: element, index } of text.matchAll(tag)) {
    const attributes = Array.from(element.matchAll(attribute))
    const kinds = attributes.flatMap(({ groups = {} }) =>
      names.test(groups.name ?? '') ? [secretNameStrength(groups.double ?? groups.single ?? groups.bare ?? '')] : [],
    )
    const kind = kinds.find((one) => one === 'strong') ?? kinds.find((one) => one !== undefined)
    if (kind === undefined) continue
    for (const { 0: whole, index: at, groups = {} } of attributes) {
      if (!values.test(groups.name ?? '')) continue
      const quotedText = groups.double ?? groups.single
      const length = quotedText === undefined ? (groups.bare ?? '').length : quotedText.length + 2
      const from = index + at + whole.length - length
      const own: FileStyle = style === 'code' ? 'code' : 'config'
      const assignment = { from, kind, style: own, first: false, indent: 0, quotedOnly: false }
      for (const span of secretValues(text, assignment)) spans.push({ ...span, key: index })
    }
  }
  return spans
}

/** Elements that hold the value of the name before them: in a property list, and in files of Java and .NET. */
const valueElement =
  /<(?:[\w.-]+:)?(?:string|data|integer|real|value|val)\b[^<>]{0,200}>\s*(?:<!\[CDATA\[)?(?<value>[^<]+)/iy
/** White space, comments and other elements between a name and its value. */
const between =
  /(?:\s+|<!--[\s\S]{0,1000}?-->|<(?!key\b|name\b|value\b|string\b|data\b|integer\b|array\b)([\w.-]{1,64})[^<>]{0,200}>[^<]{0,1000}<\/\1>){0,8}/iy
const nameElement = /<(key|name|param-name)>\s*(?<name>[^<>]{1,64}?)\s*<\/\1>/gi

/**
 * Finds the values of elements behind an element with the name of a secret: `<key>Password</key><string>…`,
 * `<name>db.password</name><value>…`. The values of an array behind it count, too.
 */
export function findElementSecrets(text: string): readonly Span[] {
  if (!text.includes('</')) return []
  const spans: Span[] = []
  for (const { 0: whole, index, groups = {} } of text.matchAll(nameElement)) {
    const kind = secretNameStrength(groups.name ?? '')
    if (kind === undefined) continue
    let at = findMatchEnd(between, text, index + whole.length) ?? index
    const isArray = text.startsWith('<array>', at)
    const stop = isArray ? text.indexOf('</array>', at) : 0
    if (isArray) at += '<array>'.length
    do {
      at = findMatchEnd(between, text, at) ?? at
      valueElement.lastIndex = at
      const match = valueElement.exec(text)
      const value = match?.groups?.value
      if (match === null || value === undefined) break
      const from = match.index + match[0].length - value.length
      const bare = value.trimEnd()
      if (!isHarmless(bare) && (kind === 'strong' || looksLikePassword(bare)))
        spans.push({ start: from, end: from + bare.length, key: index })
      at = text.indexOf('>', from + value.length) + 1
    } while (at > 0 && at < stop)
  }
  return spans
}

function findMatchEnd(pattern: RegExp, text: string, from: number): number | undefined {
  pattern.lastIndex = from
  return pattern.test(text) ? pattern.lastIndex : undefined
}
