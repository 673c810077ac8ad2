import type { Span } from '../core/kit/sorted.ts'
import { looksLikeRandomToken, secretNameStrength } from './keys.ts'
import { findNotationSecrets } from './notations.ts'
import { type FileStyle, secretValues } from './values.ts'

const code =
  /\.(?:[cm]?[jt]sx?|vue|svelte|astro|py|pyi|rb|go|rs|java|kts?|scala|groovy|gradle|swift|dart|php|cs|fs|c|h|cc|cpp|cxx|hh|hpp|m|mm|lua|r|jl|hs|ml|ex|exs|erl|clj|cljs|elm|zig|nim|cr|pl|pm|proto|graphql|gql|prisma|sol|css|scss|less|sql)$/i
const prose = /\.(?:md|mdx|markdown|txt|rst|adoc|asciidoc|org|tex|html?|log|csv|tsv|po|pot|srt|diff|patch|ipynb)$/i

let last: { readonly path: string; readonly style: FileStyle } = { path: '', style: 'config' }

/** Returns the kind of a file, by its name: settings, unless it is known to be code or prose. */
export function styleOf(path: string): FileStyle {
  if (last.path !== path) last = { path, style: code.test(path) ? 'code' : prose.test(path) ? 'prose' : 'config' }
  return last.style
}

const tableFile =
  /\.(?:csv|tsv|tab|psv|xlsx|xlsm|xltx|xltm|xlsb|xls|xlt|ods|ots|fods)(?:\.(?:bak|old|orig|backup|copy|tmp|txt|\d+)|~)?$/i

/** Whether a path has the extension of a table, also before the ending of a copy (`users.csv.bak`). */
export function isTableFile(path: string): boolean {
  return tableFile.test(path)
}

const separator = /(?:(?<![:=!<>+])(?:===?|!==?|=>|:=|=|:(?![:=]))|(?<=<\/(?:b|strong|i|em|u)>):(?!:))(?![=>])/g

/**
 * Finds values whose names say that they are secret: in files of settings, in code, on command lines, in XML and SQL. In a file of
 * settings, a name at the beginning of a line has the rest of the line as its value. Elsewhere a value is a text in quotes, or a word that
 * looks like a secret.
 */
export function findAssignedSecrets(text: string, style: FileStyle): readonly Span[] {
  return [...findSeparated(text, style), ...findNotationSecrets(text, style)]
}

function findSeparated(text: string, style: FileStyle): readonly Span[] {
  if (!text.includes('=') && !text.includes(':')) return []
  const hits: Span[] = []
  let line = 0
  let nextLine = 0
  let until = 0
  for (const { 0: sign, index } of text.matchAll(separator)) {
    // A separator inside a value belongs to the value.
    if (index < until) continue
    const name = nameBefore(text, index)
    if (name === undefined) continue
    const kind = secretNameStrength(name.text)
    if (kind === undefined || isPadding(text, index, sign)) continue
    while (nextLine !== -1 && nextLine <= name.start) {
      line = nextLine
      nextLine = text.indexOf('\n', line) + 1 || -1
    }
    const before = text.slice(Math.max(line, name.start - 200), name.start)
    const shell = sign === '=' && text[index - 1] !== ' ' && text[index + 1] !== ' ' && /^[A-Z_\d]+$/.test(name.text)
    const from = index + sign.length
    // The rest of `${PASSWORD:?must be set}` is an error message.
    if (text[from] === '?' && text.startsWith('${', name.start - 2)) continue
    closing.lastIndex = from
    const emphasis = style === 'code' ? undefined : closing.exec(text)?.[0]
    const spans = secretValues(text, {
      from: from + (emphasis?.length ?? 0),
      kind,
      style: shell && style === 'prose' ? 'config' : style === 'code' && isInText(before) ? 'prose' : style,
      first:
        /^[\s#;/*>-]*(?:(?:export|set|setx|declare(?: -x)?|ENV|ARG|env:|\$env:)\s*)?["'$]?$/i.test(before) &&
        !/[{,]/.test(before),
      indent: /^[ \t]*(?:-[ \t]+)?/.exec(text.slice(line, name.start))?.[0].length ?? 0,
      quotedOnly: /^[=!]==?$/.test(sign) && sign !== '=',
      counts: /tokens?$/i.test(name.text),
    })
    for (const span of spans) hits.push({ ...span, key: name.start })
    until = spans.at(-1)?.end ?? until
  }
  return hits
}

/** Whether a position in a line of code is inside quotes or a comment, judged by the text before it. */
function isInText(before: string): boolean {
  return /\/[/*]|^\s*(?:[#*;]|--)/.test(before) || ['"', "'", '`'].some((quote) => before.split(quote).length % 2 === 0)
}

const isNameCharacter = (code: number) =>
  (code >= 97 && code <= 122) ||
  (code >= 65 && code <= 90) ||
  (code >= 48 && code <= 57) ||
  code === 95 ||
  code === 45 ||
  code === 46 ||
  code === 36 ||
  code === 64 ||
  code > 0xa0

/** Maximum length of a name, in characters. */
const maxName = 96

/** The end of an emphasis in Markdown or HTML between a name and its value: `**Password:** hunter2`, `<b>Password:</b> hunter2`. */
const closing = /(?:\*{1,3}|_{2,3}|<\/(?:b|strong|i|em|u)>)(?=\s)/y
const closingBefore = /(?:\*{1,3}|<\/(?:b|strong|i|em|u)>)$/

/** Words that form a name with the next word, after a space: `API key: …`, `mot de passe : …`. */
const wordsBefore = /(?<![\w-])(?:api|access|secret|private|auth|signing|encryption|master|mot de)[ \t]$/i

/** The name before a separator, with or without quotes, emphasis, brackets and a `?` of TypeScript. */
function nameBefore(text: string, at: number): { readonly text: string; readonly start: number } | undefined {
  let end = at
  const floor = Math.max(0, at - maxName - 12)
  while (end > floor && (text[end - 1] === ' ' || text[end - 1] === '\t')) end--
  if (/[?\]]/.test(text[end - 1] ?? '') || (text[end - 1] === '}' && text[at] === '=')) end--
  // The sign of Make for a value that is not set: `PASSWORD ?= hunter2`.
  if (text[at] === '=' && text[at - 1] === '?') while (end > floor && /[ \t]/.test(text[end - 1] ?? '')) end--
  if (text[end - 1] === '*' || text[end - 1] === '>')
    end -= closingBefore.exec(text.slice(Math.max(floor, end - 9), end))?.[0].length ?? 0
  const quote = /["'`]/.test(text[end - 1] ?? '') ? text[end - 1] : undefined
  if (quote !== undefined) {
    const close = text[end - 2] === '\\' ? end - 2 : end - 1
    const open = text.lastIndexOf(quote, close - 1)
    if (open < floor || open === -1) return undefined
    const name = text.slice(open + 1, close)
    return name === '' || /[\r\n]/.test(name) ? undefined : { text: name, start: open + 1 }
  }
  let start = end
  while (start > floor && isNameCharacter(text.charCodeAt(start - 1))) start--
  if (start === end) return undefined
  if (/^(?:keys?|passe)$/i.test(text.slice(start, end)))
    start -= wordsBefore.exec(text.slice(Math.max(floor, start - 16), start))?.[0].length ?? 0
  return { text: text.slice(start, end), start }
}

/** Lengths of a run of base64, in characters: a shorter run than `least` counts as a name; from `surely` on, a run in quotes is base64. */
const runOfBase64 = { least: 40, surely: 4096 }

/**
 * Whether the equals signs at an index are the padding of a run of base64 in quotes, and not the separator after a name: `"iVBORw0…kSig="`.
 * A short run must also look random, because a quote can also be before a name (`"DB_PASSWORD="hunter2`).
 */
function isPadding(text: string, at: number, sign: string): boolean {
  if (sign !== '=' && sign !== '==') return false
  const floor = Math.max(0, at - runOfBase64.surely)
  let start = at
  while (start > floor && isBase64(text.charCodeAt(start - 1))) start--
  const length = at - start
  if (length < runOfBase64.least) return false
  const quote = /^\\{0,4}(["'`])/.exec(text.slice(at + sign.length, at + sign.length + 5))?.[1]
  if (quote === undefined) return false
  if (length >= runOfBase64.surely) return true
  if (text[start - 1] !== quote && !/(?:base64,|sha(?:256|384|512)-)$/.test(text.slice(Math.max(0, start - 7), start)))
    return false
  return length > maxName || looksLikeRandomToken(text.slice(start, at))
}

const isBase64 = (code: number) =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 47 && code <= 57) || code === 43
