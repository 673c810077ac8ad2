/** The HTML of a document in Markdown, as far as a page draws it. */
export interface MarkdownHtml {
  readonly html: string
  /** Whether there is more than the page draws. */
  readonly isCut: boolean
}

/** The beginning of a text as it is, for one that cannot be laid out. */
export function plainHtml(text: string): MarkdownHtml {
  const escaped = text.slice(0, 100_000).replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`)
  return { html: `<pre>${escaped}</pre>`, isCut: true }
}
