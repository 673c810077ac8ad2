import { langOf } from '../state/lang.ts'
import { shown } from '../state/shown.ts'
import { piecesOf } from './marks.ts'

/** Number of characters at the end of a long name that are always visible: long names often share their beginning. */
const tail = 10
const long = 24

interface NameProps {
  readonly text: string
  /** The words of the filter, folded, for marking. */
  readonly words: readonly string[]
  readonly class?: string
}

/** A name from a server: hidden characters are shown, text direction cannot change, and the end stays visible if space is short. */
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
