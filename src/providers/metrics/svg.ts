/** Escapes a text as XML content or attribute: without markup, and without invisible characters. */
export function escapeXml(text: string): string {
  return visible(text).replace(/[&<>"']/g, (character) => entities[character] ?? '')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Replaces characters that XML forbids, and those that change the writing direction, by their codes. */
function visible(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe\uffff]/gu, (character) => {
      return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
    })
}

type Attributes = Readonly<Record<string, string | number>>

/** Formats an element. Its content must already be markup. */
export function element(name: string, attributes: Attributes, ...content: readonly string[]): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeXml(String(value))}"`)
  const head = `<${name}${written.join('')}`
  return content.length === 0 ? `${head}/>` : `${head}>${content.join('')}</${name}>`
}

/** Rounds a coordinate to the visible precision. */
export function pixels(value: number): string {
  return String(Math.round(value * 10) / 10)
}

/** Estimates the width of a text in pixels at a font size, by classes of letters, because no font metrics are available here. */
export function widthOf(text: string, size: number): number {
  let width = 0
  for (const character of text) width += factorOf(character)
  return width * size
}

function factorOf(character: string): number {
  if (/[ilj.,:;'|!()[\]{}ftrI ]/.test(character)) return 0.33
  if (/[MWmw@%]/.test(character)) return 0.86
  if (/[A-Z]/.test(character)) return 0.67
  return (character.codePointAt(0) ?? 0) > 0x2e7f ? 1 : 0.56
}

/** Cuts a text to a width, with an ellipsis if it was cut. */
export function fitted(text: string, size: number, width: number): string {
  if (widthOf(text, size) <= width) return text
  const kept: string[] = []
  let left = width - size
  for (const character of text) {
    left -= factorOf(character) * size
    if (left < 0) break
    kept.push(character)
  }
  return `${kept.join('').trimEnd()}…`
}
