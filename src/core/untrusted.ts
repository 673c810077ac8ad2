import type { Description } from './provider.ts'

/**
 * Characters that drive a terminal, turn the direction of text or cannot be seen: C0 and C1 controls, DEL, the marks,
 * embeddings, overrides and isolates of bidirectional text (UAX #9), and tags (U+E0000 to U+E007F).
 */
const hidden = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\u{e0000}-\u{e007f}]/gu

/** Characters that end a line or a column; a text of one line has a space there. */
const breaks = /\r\n|[\t\n\v\f\r\u0085\u2028\u2029]/g

/** A text that a source made up, as one line without characters that act or that cannot be seen. */
export function cleanText(text: string): string {
  return text.replace(breaks, ' ').replace(hidden, '')
}

type Texts = Pick<Description, 'title' | 'description'>

/** A source's entry, template, prompt or content with its title and description cleaned; the same object where nothing changes. */
export function cleanTexts<T extends Texts>(facts: T): T {
  const { title, description } = facts
  const cleaned = {
    ...(title === undefined ? {} : { title: cleanText(title) }),
    ...(description === undefined ? {} : { description: cleanText(description) }),
  }
  const changed = cleaned.title !== title || cleaned.description !== description
  return changed ? { ...facts, ...cleaned } : facts
}
