import { fold } from '../../../browse/matching.ts'
import { langOf, shown } from '../state/shown.ts'

/** Number of characters at the end of a long name that are always visible: long names often share their beginning. */
const tail = 10
const long = 24

interface NameProps {
  readonly text: string
  /** The words of the filter, folded: they are marked. */
  readonly words: readonly string[]
  readonly class?: string
}

/** A name from a server: what is hidden in it is to be seen, it turns nothing around, and its end stays where there is no room. */
export function Name({ text, words, class: name = '' }: NameProps) {
  const cut = text.length > long ? cutOf(text) : text.length
  const pieces = piecesOf(text, words)
  let at = 0
  const placed = pieces.map((piece) => {
    const start = at
    at += piece.text.length
    return { ...piece, start }
  })
  const part = (from: number, to: number) =>
    placed.flatMap(({ text, isMarked, start }) => {
      const visible = onOneLine(shown(text.slice(Math.max(0, from - start), Math.max(0, to - start))))
      if (visible === '') return []
      return [isMarked ? <mark key={start}>{visible}</mark> : visible]
    })
  const lang = langOf(text)
  return (
    <bdi class={`name ${name}`} {...(lang === undefined ? {} : { lang })}>
      <span class="name-head">{part(0, cut)}</span>
      {cut < text.length ? <span class="name-tail">{part(cut, text.length)}</span> : null}
    </bdi>
  )
}

const onOneLine = (text: string) => text.replace(/[\t\n\r]+/g, ' ')

/** Returns the start of the visible end, not within a character. */
function cutOf(text: string): number {
  const cut = text.length - tail
  const code = text.charCodeAt(cut)
  return code >= 0xdc00 && code <= 0xdfff ? cut + 1 : cut
}

/** A path with its words marked. If there is not enough room, its end is visible. */
export function PathText({ text, words }: NameProps) {
  return (
    <span class="path">
      <bdi dir="ltr">
        {piecesOf(text, words).map(({ text, isMarked }, at) =>
          isMarked ? <mark key={at}>{shown(text)}</mark> : shown(text),
        )}
      </bdi>
    </span>
  )
}

/** A letter with the marks that follow it, also those that half-width kana have: together they fold to one. */
const letters = /.[\p{M}\uff9e\uff9f]*/gsu

/**
 * Returns the ranges of the words of a filter in a text: half-open, in UTF-16 units, in order, not overlapping. It matches as the filter
 * does, regardless of width and composition of letters.
 *
 * @param words Folded.
 */
export function marksOf(text: string, words: readonly string[]): readonly (readonly [start: number, end: number])[] {
  if (words.length === 0) return []
  /** For each unit of the folded text, where the letter that it came from begins and ends. */
  const starts: number[] = []
  const ends: number[] = []
  let folded = ''
  for (const { 0: letter, index } of text.matchAll(letters)) {
    const part = fold(letter)
    folded += part
    for (let unit = 0; unit < part.length; unit++) {
      starts.push(index)
      ends.push(index + letter.length)
    }
  }
  const found: (readonly [number, number])[] = []
  for (const word of words)
    for (let at = folded.indexOf(word); at !== -1; at = folded.indexOf(word, at + word.length))
      found.push([starts[at] ?? 0, ends[at + word.length - 1] ?? text.length])
  return joined(found)
}

function joined(marks: readonly (readonly [number, number])[]): readonly (readonly [number, number])[] {
  const sorted = [...marks].sort(([a], [b]) => a - b)
  const result: [number, number][] = []
  for (const [start, end] of sorted) {
    const last = result.at(-1)
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end)
    else result.push([start, end])
  }
  return result
}

/** A text in pieces, the marked ones among them. */
export function piecesOf(
  text: string,
  words: readonly string[],
): readonly { readonly text: string; readonly isMarked: boolean }[] {
  const pieces: { readonly text: string; readonly isMarked: boolean }[] = []
  let from = 0
  for (const [start, end] of marksOf(text, words)) {
    if (start > from) pieces.push({ text: text.slice(from, start), isMarked: false })
    pieces.push({ text: text.slice(start, end), isMarked: true })
    from = end
  }
  if (from < text.length || pieces.length === 0) pieces.push({ text: text.slice(from), isMarked: false })
  return pieces
}
