import type { Description } from './provider.ts'

/**
 * Characters that control a terminal, change the direction of text or are invisible: C0 and C1 controls, DEL, the marks,
 * embeddings, overrides and isolates of bidirectional text (UAX #9), and tags (U+E0000 to U+E007F).
 */
const hidden = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\u{e0000}-\u{e007f}]/gu

/** Characters that end a line or a column. In a text of one line, a space replaces them. */
const breaks = /\r\n|[\t\n\v\f\r\u0085\u2028\u2029]/g

/** Returns a text of a source as one line, without control characters and invisible characters. */
export function cleanText(text: string): string {
  return text.replace(breaks, ' ').replace(hidden, '')
}

type Texts = Pick<Description, 'title' | 'description'>

/** Cleans the title and description of a source's entry, template, prompt or content. Returns the same object when nothing changes. */
export function cleanTexts<T extends Texts>(facts: T): T {
  const { title, description } = facts
  if (title === undefined && description === undefined) return facts
  const cleaned = {
    ...(title === undefined ? {} : { title: cleanText(title) }),
    ...(description === undefined ? {} : { description: cleanText(description) }),
  }
  const changed = cleaned.title !== title || cleaned.description !== description
  return changed ? { ...facts, ...cleaned } : facts
}
