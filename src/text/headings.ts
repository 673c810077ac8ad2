import { createFence, declarators, isProse, modifiers } from './declarations.ts'

/** How a text is split. */
export type Kind = 'markdown' | 'code' | 'table' | 'plain'

export interface Heading {
  readonly text: string
  /** Whether it begins a passage even if the passage before it is short. */
  readonly always: boolean
}

/** Takes the lines one after the other, and returns the heading if something with a name begins at the line. */
export type Outline = (line: string) => Heading | undefined

const longest = 120

const tableEndings = /\.(?:csv|tsv|jsonl|ndjson|log)$/i
const codeEndings =
  /\.(?:[cm]?[jt]sx?|py|rb|go|rs|java|kt|kts|scala|swift|c|h|cc|cpp|cxx|hpp|cs|php|pl|lua|r|jl|ex|exs|erl|hs|ml|clj|dart|sh|bash|zsh|ps1|sql|proto|vue|svelte|zig|nim)$/i
const codeTypes =
  /^(?:text\/(?:x-|javascript|typescript|ecmascript)|application\/(?:javascript|typescript|x-(?:sh|python|ruby|perl|php|httpd-php)|sql))/

/** Chosen by the MIME type, or else by the extension of the path. */
export function kindOf(mimeType: string | undefined, path: string): Kind {
  if (isProse(path, mimeType)) return 'markdown'
  if (mimeType === 'text/csv' || mimeType === 'text/tab-separated-values' || tableEndings.test(path)) return 'table'
  return codeEndings.test(path) || codeTypes.test(mimeType ?? '') ? 'code' : 'plain'
}

export function headingsOf(kind: Kind): Outline {
  if (kind === 'markdown') return markdownOutline()
  if (kind === 'table') return tableOutline()
  return kind === 'code' ? codeOutline : () => undefined
}

/** Headings under headings: `Install > On Linux`. Lines in a fenced block are not headings. */
function markdownOutline(): Outline {
  const stack: string[] = []
  const isFenced = createFence()
  return (line) => {
    const depth = isFenced(line) ? 0 : (/^ {0,3}(#{1,6})[ \t]/.exec(line)?.[1]?.length ?? 0)
    if (depth === 0) return undefined
    stack.length = Math.min(stack.length, depth - 1)
    stack.push(shorten(line.trim().slice(depth).replace(/#+$/, '')))
    return { text: shorten(stack.join(' > ')), always: true }
  }
}

/** Each passage of a table gets the column names as its heading. */
function tableOutline(): Outline {
  let isFirst = true
  return (line) => {
    const found =
      isFirst && line.trim() !== '' && !/^[[{]/.test(line) ? { text: shorten(line), always: false } : undefined
    isFirst = false
    return found
  }
}

const declaration = new RegExp(
  `^ {0,4}(?:(?:${modifiers}|pub(?:\\([a-z]+\\))?|virtual|extern) ){0,6}(?:${declarators}|function\\*|defp|defmodule|mod) *[(\\w$"\`<*]`,
)
const named = /^(?:export )?(?:const|let|var) [\w$]+ *(?::[^=]{0,100})?= *(?:async *)?(?:\(|function|[\w$]+ *=>)/

/** A declaration, recognised by the beginning of its line: that is right often enough in most languages. */
function codeOutline(line: string): Heading | undefined {
  if (line.length > 500 || !(declaration.test(line) || named.test(line))) return undefined
  return { text: shorten(line.replace(/[{:=(]?\s*$/, '')), always: false }
}

function shorten(text: string): string {
  const bare = text
    .slice(0, 4 * longest)
    .replace(/\s+/g, ' ')
    .trim()
  if (bare.length <= longest) return bare
  const cut = bare.slice(0, longest - 1)
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)}…`
}
