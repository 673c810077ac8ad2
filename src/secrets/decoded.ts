import { lazyPattern } from '../core/kit/matching.ts'
import { firstIndex, type Span } from '../core/kit/sorted.ts'

/** Characters that are not drawn (tags, variation selectors, zero widths): they split words for a program but not for a reader. */
const unseen = lazyPattern(String.raw`[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]`, 'gu')

function narrow(text: string): string {
  return text.replace(/[\uff01-\uff5e]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0))
}

const marks = lazyPattern(String.raw`\p{M}`, 'gu')

/**
 * Folds a name to the form that its reader sees: full-width forms become ASCII, and marks and invisible characters are removed. The case
 * stays. A name of more than 256 characters is cut to its first and last 128.
 */
export function foldName(name: string): string {
  const start = name.length > 256 ? `${name.slice(0, 128)}${name.slice(-128)}` : name
  if (/^[\x20-\x7e]*$/.test(start)) return start
  return start.normalize('NFKD').replace(marks(), '').replace(unseen(), '')
}

/** A text as a program or a reader decodes it, with the position of each of its characters in the source. */
export interface DecodedText {
  readonly text: string
  /** Returns the start in the source of the character at an index. */
  startOf(index: number): number
  /** Returns the end in the source of the character before an index. */
  endOf(index: number): number
}

/** A text that no decoding changes. */
const isPlain = /^[^\\&%\r\n"'\u0080-\uffff]*$/

/**
 * Returns a text and its decoded forms, the text itself first. Each form is made of the one before: without the prefixes of the lines of a
 * patch or a blame, with escapes decoded (JSON, JavaScript, XML, Markdown, `%41`), without invisible characters, with full-width forms as
 * ASCII, with continued lines joined. A form that changes nothing is left out.
 */
export function decodedTexts(text: string): readonly DecodedText[] {
  const texts: DecodedText[] = [{ text, startOf: (index) => index, endOf: (index) => index }]
  if (isPlain.test(text)) return texts
  for (const change of [
    stripPrefixes,
    readEscapes,
    readEscapes,
    readPercents,
    readPercents,
    readPercents,
    joinTexts,
    joinLines,
  ]) {
    const last = texts.at(-1)
    const next = last === undefined ? undefined : change(last)
    if (next !== undefined) texts.push(next)
  }
  return texts
}

const patchPrefix = /^(?:[+ -]|@@ -[\d,]+ \+[\d,]+ @@ ?)/gm
/** Prefixes of the lines of a blame as a git mount writes it, and its lines that name a commit. */
const blamePrefix = /^(?: {5}\d| {4}\d\d| {3}\d{3}| {2}\d{4}| \d{5}|\d{6,7}) {2}|^[0-9a-f]{12} \d{4}-\d\d-\d\d .*\n/gm

function stripPrefixes(source: DecodedText): DecodedText | undefined {
  if (/^@@ -[\d,]+ \+[\d,]+ @@/m.test(source.text)) return rewrite(source, patchPrefix, () => '')
  // Any text may have a line that begins with a number, but seldom two in succession.
  const isBlame = /^Blame of |^ {0,5}\d{1,7} {2}.*\n(?:[0-9a-f]{12} .*\n)? {0,5}\d{1,7} {2}/m.test(source.text)
  return isBlame ? rewrite(source, blamePrefix, () => '') : undefined
}

const escapes =
  /\\u\{([0-9a-fA-F]{1,6})\}|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\x([0-9a-fA-F]{2})|\\([/\\"nrt`*_[\]<>|=+~#!{}()-])|&#x([0-9a-fA-F]{1,6});|&#(\d{1,7});|&(amp|quot|apos|lt|gt);|([\uff01-\uff5e])/g

const breaks: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' }

const entities: Readonly<Record<string, string>> = { amp: '&', quot: '"', apos: "'", lt: '<', gt: '>' }

const everyEscape = lazyPattern(`${escapes.source}|[\\p{Default_Ignorable_Code_Point}\\ufff9-\\ufffb]`, 'gu')

function readEscapes(source: DecodedText): DecodedText | undefined {
  const hasOthers = /[^\0-\x7f]/.test(source.text) && source.text.search(unseen()) !== -1
  if (!hasOthers && !/\\[uUx/\\"nrt`*_[\]<>|=+~#!{}()-]|&(?:#|amp|quot|apos|lt|gt)|[\uff01-\uff5e]/.test(source.text))
    return undefined
  const pattern = hasOthers ? everyEscape() : escapes
  return rewrite(source, pattern, ([whole = '', braced, short, long, byte, sign, hex, decimal, entity, wide]) => {
    if (sign !== undefined) return breaks[sign] ?? sign
    if (entity !== undefined) return entities[entity]
    if (wide !== undefined) return narrow(wide)
    const digits = braced ?? short ?? long ?? byte ?? hex
    if (digits === undefined && decimal === undefined) return whole.search(unseen()) === 0 ? '' : undefined
    const code = digits === undefined ? Number(decimal) : Number.parseInt(digits, 16)
    return code <= 0x10ffff ? String.fromCodePoint(code) : undefined
  })
}

function readPercents(source: DecodedText): DecodedText | undefined {
  if (!/%[2-7][0-9a-fA-F]/.test(source.text)) return undefined
  return rewrite(source, /%([2-7][0-9a-fA-F])/g, ([, digits = '']) => String.fromCharCode(Number.parseInt(digits, 16)))
}

/** Joints at which a text continues: after a backslash, and between string literals joined with `+` or by adjacency. */
const joints =
  /\\\r?\n[ \t]*(?=[\w+/=.-])|(?<=[\w+/=.-])(?:(["'`])[ \t]*(?:[+.&][ \t]*)?\\?\r?\n[ \t]*(?:[+.&][ \t]*)?\1|(["'])[ \t]*[+.&][ \t]*\2)(?=[\w+/=.-])/g

function joinTexts(source: DecodedText): DecodedText | undefined {
  if (!/[\\"'`][ \t]*[+.&]?[ \t]*[\\\r\n]|["'][ \t]*[+.&]/.test(source.text)) return undefined
  return rewrite(source, joints, () => '')
}

/** Lengths of a line of wrapped base64, in characters: the shortest, the shortest that is known by its length alone, the longest. */
const wrapped = { least: 16, surely: 40, most: 1024 }

/** The end of a line of base64, and the next one, which may be quoted, indented or in a comment. */
const nextLine =
  /["',\\]{0,3}[ \t]*\r?\n[ \t"'#*>|]*(?<line>[A-Za-z0-9+/_.-]{1,1024}={0,2})(?=["'`<]|[,;\\)}\]]{0,3}[ \t]*\r?(?:\n|$)|(?<==)(?!\w)|[^\w=+/](?<=[A-Za-z0-9+/_-]{16}[^\w=+/]))/y

/**
 * Joins the lines of wrapped base64 and hexadecimal. Short lines must have one length, except the first, which may be behind a name, and
 * the last.
 */
function joinLines(source: DecodedText): DecodedText | undefined {
  const { text } = source
  const cuts: Replacement[] = []
  let until = 0
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', Math.max(end + 1, until))) {
    let last = end
    while (last > until && end - last < 8 && /[\s"',\\]/.test(text[last - 1] ?? '')) last--
    let first = last
    while (first > until && last - first < wrapped.most && isOfBase64(text.charCodeAt(first - 1))) first--
    if (last - first < wrapped.least) continue
    const { joints, isSure } = linesBehind(text, last, last - first)
    if (!isSure) continue
    cuts.push(...joints)
    until = joints.at(-1)?.end ?? 0
  }
  return replaced(source, cuts)
}

/** Finds the lines of base64 that continue a line: the line breaks to remove, and whether the lengths are those of wrapped base64. */
function linesBehind(text: string, from: number, length: number) {
  const joints: Replacement[] = []
  const lengths = [length]
  let line = ''
  for (let at = from; !line.endsWith('='); ) {
    nextLine.lastIndex = at
    const match = nextLine.exec(text)
    const before = lengths.at(-1) ?? 0
    const isLast = lengths.length > 2 && before < (lengths.at(-2) ?? 0)
    line = match?.groups?.line ?? ''
    if (match === null || isLast || (lengths.length > 1 && before < wrapped.surely && line.length > before)) break
    at = nextLine.lastIndex
    joints.push({ start: match.index, end: at - line.length, text: '' })
    lengths.push(line.length)
  }
  const [, second, third] = lengths
  const isEven = second === length || (second !== undefined && second >= wrapped.least && second === third)
  return { joints, isSure: joints.length > 0 && (length >= wrapped.surely || isEven || line.endsWith('=')) }
}

const isOfBase64 = (code: number) =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 45 && code <= 57) || code === 43 || code === 95

interface Replacement extends Span {
  readonly text: string
}

/** Replaces the matches of a pattern, except those for which the function returns `undefined`. */
function rewrite(
  source: DecodedText,
  pattern: RegExp,
  replace: (match: RegExpExecArray) => string | undefined,
): DecodedText | undefined {
  const changes: Replacement[] = []
  for (const match of source.text.matchAll(pattern)) {
    const text = replace(match)
    if (text !== undefined) changes.push({ start: match.index, end: match.index + match[0].length, text })
  }
  return replaced(source, changes)
}

/** Makes changes, which are in order and do not overlap. Returns `undefined` if there are none. */
function replaced(source: DecodedText, changes: readonly Replacement[]): DecodedText | undefined {
  if (changes.length === 0) return undefined
  const pieces: string[] = []
  const ends: number[] = []
  const shifts: number[] = []
  let from = 0
  let length = 0
  for (const { start, end, text } of changes) {
    pieces.push(source.text.slice(from, start), text)
    length += start - from + text.length
    from = end
    ends.push(length)
    shifts.push(from - length)
  }
  pieces.push(source.text.slice(from))
  const changesUpTo = (index: number) => firstIndex(0, ends.length, (change) => (ends[change] ?? 0) > index)
  return {
    text: pieces.join(''),
    startOf: (index) => source.startOf(index + (shifts[changesUpTo(index) - 1] ?? 0)),
    endOf: (index) => {
      let change = changesUpTo(index)
      // Text removed after the character does not belong to it.
      while (change > 0 && ends[change - 1] === index && changes[change - 1]?.text === '') change--
      return source.endOf(index + (shifts[change - 1] ?? 0))
    },
  }
}
