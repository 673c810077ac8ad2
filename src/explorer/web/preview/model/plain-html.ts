/** The HTML of a Markdown document, up to the limits of a page. */
export interface MarkdownHtml {
  readonly html: string
  /** Whether parts of the document were left out. */
  readonly isCut: boolean
}

/** The beginning of a text as written, if the text cannot be laid out. */
export function plainHtml(text: string): MarkdownHtml {
  const escaped = text.slice(0, 100_000).replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`)
  return { html: `<pre>${escaped}</pre>`, isCut: true }
}
