/** A text as the content of an element or of an attribute in XML: nothing of it is markup, and nothing of it is invisible. */
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

/** What XML has no room for, or what would turn the order of what stands around it, as its code. */
function visible(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe\uffff]/gu, (character) => {
      return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
    })
}

type Attributes = Readonly<Record<string, string | number>>

/** An element with what is in it, which is markup already. */
export function element(name: string, attributes: Attributes, ...content: readonly string[]): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeXml(String(value))}"`)
  const head = `<${name}${written.join('')}`
  return content.length === 0 ? `${head}/>` : `${head}>${content.join('')}</${name}>`
}

/** A number with as many digits as can be seen. */
export function pixels(value: number): string {
  return String(Math.round(value * 10) / 10)
}

/** About how wide a text is, in pixels at a size: letters by their kinds, since nothing here can measure them. */
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

/** As much of a text as fits, with an ellipsis where that is not all. */
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
