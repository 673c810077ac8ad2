/** How texts are divided: what their parts begin with, told line by line and by nothing but how a line looks. */

/** Names of files of prose, whose parts stand under headings. */
const proseNames = /\.(?:md|mdx|markdown|adoc|rst|org)$/i

export function isProse(path: string, mimeType: string | undefined): boolean {
  return mimeType === 'text/markdown' || proseNames.test(path)
}

/** Tells of each line of Markdown, one after the other, whether it stands in a fence of code, or ends none just now. */
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

/** Words before a declaration in most languages, as a part of a regular expression. */
export const modifiers =
  'export|default|declare|public|private|protected|internal|static|abstract|final|async|unsafe|open|override|sealed|inline'

/** Words that begin a declaration in most languages, as a part of a regular expression. */
export const declarators =
  'function|class|interface|type|enum|struct|trait|impl|fn|func|def|module|namespace|object|record|protocol|extension|message|' +
  'service|create (?:or replace )?(?:table|view|function)|CREATE (?:OR REPLACE )?(?:TABLE|VIEW|FUNCTION)'
