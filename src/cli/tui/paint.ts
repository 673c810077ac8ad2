import type { Cell, Row, Style } from './cells.ts'

/** Draws screens, and writes only the parts that have changed. */
export interface Painter {
  draw(rows: readonly Row[], cursor?: Position): void
  /** Forgets the content of the screen, so that the next frame is drawn as a whole. */
  forget(): void
}

/** From 0. */
export interface Position {
  readonly row: number
  readonly column: number
}

const start = '\u001b['
const attributes: Readonly<Record<Style, { readonly plain: string; readonly colour: string }>> = {
  plain: { plain: '', colour: '' },
  dim: { plain: '2', colour: '2' },
  bold: { plain: '1', colour: '1' },
  folder: { plain: '1', colour: '1;34' },
  heading: { plain: '1', colour: '1;36' },
  code: { plain: '', colour: '33' },
  key: { plain: '', colour: '36' },
  string: { plain: '', colour: '32' },
  number: { plain: '', colour: '35' },
  mark: { plain: '1;4', colour: '1;4;33' },
  changed: { plain: '1', colour: '1;33' },
  picked: { plain: '1', colour: '1;32' },
  error: { plain: '1', colour: '1;31' },
  bar: { plain: '7', colour: '7' },
  title: { plain: '1;7', colour: '1;7' },
}
/** Escapes stand out from text that merely looks like one. */
const escaped = { plain: '4', colour: '4;35' }

/**
 * @param colour Without it, there are bold, underlined and reversed characters only (https://no-color.org).
 */
export function createPainter(write: (text: string) => void, colour: boolean): Painter {
  let shown: readonly string[] | undefined
  let placed = ''
  return {
    draw: (rows, cursor) => {
      const next = rows.map((row) => paintRow(row, colour))
      const isNew = shown === undefined || shown.length !== next.length
      const changed = next.flatMap((text, at) => (isNew || shown?.[at] !== text ? [`${start}${at + 1};1H${text}`] : []))
      shown = next
      const place =
        cursor === undefined ? `${start}?25l` : `${start}${cursor.row + 1};${cursor.column + 1}H${start}?25h`
      if (changed.length === 0 && place === placed) return
      placed = place
      // Terminals with mode 2026 show the whole frame at once; others ignore it.
      const clear = isNew ? `${start}0m${start}2J` : ''
      write(`${start}?2026h${start}?25l${clear}${changed.join('')}${place}${start}?2026l`)
    },
    forget: () => {
      shown = undefined
      placed = ''
    },
  }
}

/** A row as a terminal takes it, from its first column. */
export function paintRow(row: Row, colour: boolean): string {
  let text = ''
  let now = ''
  let column = 1
  for (const cell of row) {
    const attribute = attributeOf(cell, colour)
    if (attribute !== now) text += `${start}0${attribute === '' ? '' : `;${attribute}`}m`
    now = attribute
    // Blanks are written first, because a terminal may draw the character narrower and would leave old text beside it. Then the
    // cursor moves to the column where the cell has to end.
    const next = column + cell.width
    text += cell.sure ? cell.text : `${' '.repeat(cell.width)}${start}${column}G${cell.text}${start}${next}G`
    column = next
  }
  return now === '' ? text : `${text}${start}0m`
}

function attributeOf({ style, selected, escaped: isEscaped }: Cell, colour: boolean): string {
  // The chosen line is of one colour.
  const kind = colour && selected === undefined ? 'colour' : 'plain'
  const chosen = selected === undefined ? [] : [selected === 'firm' ? '7' : '2;7']
  const parts = [attributes[style][kind], ...(isEscaped ? [escaped[kind]] : []), ...chosen]
  return parts.filter((part) => part !== '').join(';')
}
