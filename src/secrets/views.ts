import { patternOf } from '../core/kit/matching.ts'
import { firstIndex } from '../core/kit/sorted.ts'

/** Zero-width characters: they split words for a program but not for a reader. */
const unseen =
  /[\u00ad\u061c\u115f\u1160\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]|[\u034f\u180b-\u180f\ufe00-\ufe0f]/g

/** A full-width form of ASCII (U+FF01 to U+FF5E) as ASCII; any other character as it is. */
function narrow(text: string): string {
  return text.replace(/[\uff01-\uff5e]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0))
}

const marks = patternOf(String.raw`\p{M}`, 'gu')

/**
 * Folds a name to the form that its reader sees: full-width forms become ASCII, and marks and invisible characters are removed.
 * The case stays. Of a name of more than 256 characters, only the two ends count.
 */
export function foldName(name: string): string {
  const start = name.length > 256 ? `${name.slice(0, 128)}${name.slice(-128)}` : name
  if (/^[\x20-\x7e]*$/.test(start)) return start
  return start.normalize('NFKD').replace(marks(), '').replace(unseen, '')
}

/** A text as a program or a reader sees it, with the position of each of its characters in the source. */
export interface View {
  readonly text: string
  /** Returns the start in the source of the character at an index. */
  startOf(index: number): number
  /** Returns the end in the source of the character before an index. */
  endOf(index: number): number
}

/**
 * A text that no view changes: it has no escapes, no invisible or other non-ASCII characters, one line, and no joined texts.
 */
const isPlain = /^[^\\&%\r\n"'\u0080-\uffff]*$/

/**
 * Returns the views of a text. The first one is the text itself; then the prefixes of the lines of a patch or a blame are removed,
 * its escapes are decoded (JSON, JavaScript, XML, Markdown, `%41`), invisible characters are removed, full-width forms become ASCII, and
 * continued lines are joined. Each view is made of the one before. A view that changes nothing is left out.
 */
export function viewsOf(text: string): readonly View[] {
  const views: View[] = [{ text, startOf: (index) => index, endOf: (index) => index }]
  if (isPlain.test(text)) return views
  for (const change of [stripPrefixes, readEscapes, readEscapes, readPercents, joinLines]) {
    const last = views.at(-1)
    const next = last === undefined ? undefined : change(last)
    if (next !== undefined) views.push(next)
  }
  return views
}

/** Prefixes of the lines of a patch, and of a blame as a git mount writes it, with its lines that name a commit. */
const patchPrefix = /^(?:[+ -]|@@ -[\d,]+ \+[\d,]+ @@ ?)/gm
const blamePrefix = /^(?: {5}\d| {4}\d\d| {3}\d{3}| {2}\d{4}| \d{5}|\d{6,7}) {2}|^[0-9a-f]{12} \d{4}-\d\d-\d\d .*\n/gm

function stripPrefixes(view: View): View | undefined {
  if (/^@@ -[\d,]+ \+[\d,]+ @@/m.test(view.text)) return rewrite(view, patchPrefix, () => '')
  // A part of a blame has no title. Any text may have a line that begins with a number, but seldom two in succession.
  const isBlame = /^Blame of |^ {0,5}\d{1,7} {2}.*\n(?:[0-9a-f]{12} .*\n)? {0,5}\d{1,7} {2}/m.test(view.text)
  return isBlame ? rewrite(view, blamePrefix, () => '') : undefined
}

const escapes =
  /\\u\{([0-9a-fA-F]{1,6})\}|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\x([0-9a-fA-F]{2})|\\([/\\"nrt`*_[\]<>|=+~#!{}()-])|&#x([0-9a-fA-F]{1,6});|&#(\d{1,7});|&(amp|quot|apos|lt|gt);|([\uff01-\uff5e])/g

const breaks: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' }

const entities: Readonly<Record<string, string>> = { amp: '&', quot: '"', apos: "'", lt: '<', gt: '>' }

function readEscapes(view: View): View | undefined {
  if (
    !/\\[uUx/\\"nrt`*_[\]<>|=+~#!{}()-]|&(?:#|amp|quot|apos|lt|gt)|[\uff01-\uff5e]/.test(view.text) &&
    view.text.search(unseen) === -1
  )
    return undefined
  const pattern = new RegExp(`${escapes.source}|${unseen.source}`, 'g')
  return rewrite(view, pattern, ([whole = '', braced, short, long, byte, sign, hex, decimal, entity, wide]) => {
    if (sign !== undefined) return breaks[sign] ?? sign
    if (entity !== undefined) return entities[entity]
    if (wide !== undefined) return narrow(wide)
    const digits = braced ?? short ?? long ?? byte ?? hex
    if (digits === undefined && decimal === undefined) return whole.search(unseen) === 0 ? '' : undefined
    const code = digits === undefined ? Number(decimal) : Number.parseInt(digits, 16)
    return code <= 0x10ffff ? String.fromCodePoint(code) : undefined
  })
}

function readPercents(view: View): View | undefined {
  if (!/%[2-7][0-9a-fA-F]/.test(view.text)) return undefined
  return rewrite(view, /%([2-7][0-9a-fA-F])/g, ([, digits = '']) => String.fromCharCode(Number.parseInt(digits, 16)))
}

/**
 * Joints at which a line continues on the next: after a backslash, between string literals joined with `+` or by adjacency, and in
 * a wrapped run of base64. An equals sign occurs only at the end of base64: text with one inside is another setting.
 */
const joints =
  /(?<=[\w+/=.-])(?:\\\r?\n[ \t]*|(["'`])[ \t]*(?:[+.&][ \t]*)?\\?\r?\n[ \t]*(?:[+.&][ \t]*)?\1|(["'])[ \t]*[+.&][ \t]*\2)(?=[\w+/=.-])|(?<=[A-Za-z0-9+/_.-]{40})\r?\n[ \t"'#*>|-]*(?=[A-Za-z0-9+/_.-]{1,200}={0,2}["',]*[ \t]*\r?(?:\n|$)|[A-Za-z0-9+/_-]{1,200}={1,2}(?!\w)|[A-Za-z0-9+/_-]{16,200}(?![\w=]))/g

function joinLines(view: View): View | undefined {
  if (!/[\r\n]|["'][ \t]*[+.&]/.test(view.text)) return undefined
  return rewrite(view, joints, () => '')
}

/**
 * Replaces the matches of a pattern, except those for which the function returns `undefined`. Returns `undefined` if nothing
 * changed.
 */
function rewrite(
  view: View,
  pattern: RegExp,
  replace: (match: RegExpExecArray) => string | undefined,
): View | undefined {
  const pieces: string[] = []
  /** For each change: its end in the new text, and the offset between the old and the new text there. */
  const ends: number[] = []
  const shifts: number[] = []
  const removed = new Set<number>()
  let from = 0
  let length = 0
  for (const match of view.text.matchAll(pattern)) {
    const replacement = replace(match)
    if (replacement === undefined) continue
    const kept = view.text.slice(from, match.index)
    pieces.push(kept, replacement)
    from = match.index + match[0].length
    length += kept.length + replacement.length
    if (replacement === '') removed.add(ends.length)
    ends.push(length)
    shifts.push(from - length)
  }
  if (ends.length === 0) return undefined
  pieces.push(view.text.slice(from))
  /** Returns the number of changes that end at or before an index. */
  const changesUpTo = (index: number) => firstIndex(0, ends.length, (change) => (ends[change] ?? 0) > index)
  return {
    text: pieces.join(''),
    startOf: (index) => view.startOf(index + (shifts[changesUpTo(index) - 1] ?? 0)),
    endOf: (index) => {
      let change = changesUpTo(index)
      // Text removed after the character does not belong to it.
      while (change > 0 && ends[change - 1] === index && removed.has(change - 1)) change--
      return view.endOf(index + (shifts[change - 1] ?? 0))
    },
  }
}
