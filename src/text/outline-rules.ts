/** Rules that divide texts into parts. They judge each line by its form alone. */

/** Files of prose, whose parts begin with headings. */
const proseNames = /\.(?:md|mdx|markdown|adoc|rst|org)$/i

export function isProse(path: string, mimeType: string | undefined): boolean {
  return mimeType === 'text/markdown' || proseNames.test(path)
}

/** Returns a function that reads Markdown line by line, and returns whether the line is inside a code fence. The closing line is not. */
export function createFence(): (line: string) => boolean {
  let fence: string | undefined
  return (line) => {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (mark !== undefined) {
      if (fence === undefined) fence = mark
      else if (mark.startsWith(fence)) fence = undefined
    }
    return fence !== undefined
  }
}

/** Modifiers of declarations in most languages, as a part of a regular expression. */
export const modifiers =
  'export|default|declare|public|private|protected|internal|static|abstract|final|async|unsafe|open|override|sealed|inline'

/** Keywords of declarations in most languages, as a part of a regular expression. */
export const declarators =
  'function|class|interface|type|enum|struct|trait|impl|fn|func|def|module|namespace|object|record|protocol|extension|message|' +
  'service|create (?:or replace )?(?:table|view|function)|CREATE (?:OR REPLACE )?(?:TABLE|VIEW|FUNCTION)'
