import { kindOfKey } from './keys.ts'
import type { Span } from './spans.ts'
import { type Style, secretValues } from './values.ts'

/** The most attributes and pieces of white space of one tag that are looked at. */
const tag = /<[A-Za-z][\w:.-]{0,63}(?=\s)(?:[^<>"']{1,4096}|"[^"<]{0,65536}"|'[^'<]{0,65536}'){0,200}/g

const attribute =
  /(?<![\w:.-])(?<name>[\w:.-]{1,64})\s{0,16}=\s{0,16}(?:"(?<double>[^"]*)"|'(?<single>[^']*)'|(?<bare>[^\s"'<>=`]+))/g

/** Attributes that name what the element holds, and those that hold it. */
const names = /^(?:name|id|key|type|property|itemprop|autocomplete|http-equiv)$/i
const values = /^(?:value|content|default|val|data|data-value|defaultvalue)$/i

/**
 * Values of elements of HTML and XML whose other attributes have the name of a secret, in any order and with others between:
 * `<input type="password" value="…">`, `<add value="…" key="ApiKey"/>`.
 */
export function findAttributeSecrets(text: string, style: Style): readonly Span[] {
  if (!text.includes('<')) return []
  const found: Span[] = []
  for (const { 0: element, index } of text.matchAll(tag)) {
    const attributes = Array.from(element.matchAll(attribute))
    const kinds = attributes.flatMap(({ groups = {} }) =>
      names.test(groups.name ?? '') ? [kindOfKey(groups.double ?? groups.single ?? groups.bare ?? '')] : [],
    )
    const kind = kinds.find((one) => one === 'strong') ?? kinds.find((one) => one !== undefined)
    if (kind === undefined) continue
    for (const { 0: whole, index: at, groups = {} } of attributes) {
      if (!values.test(groups.name ?? '')) continue
      const held = groups.double ?? groups.single
      const length = held === undefined ? (groups.bare ?? '').length : held.length + 2
      const from = index + at + whole.length - length
      const own: Style = style === 'code' ? 'code' : 'config'
      const assignment = { from, kind, style: own, first: false, indent: 0, quotedOnly: false }
      for (const span of secretValues(text, assignment)) found.push({ ...span, key: index })
    }
  }
  return found
}
