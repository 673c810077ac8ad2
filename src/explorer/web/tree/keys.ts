import { fold } from '../../../browse/matching.ts'
import { parentIndex, type TreeRow } from './rows.ts'

/** Effect of a key in the tree (WAI-ARIA Authoring Practices, tree view): a row to go to, or an action on the active row. */
export type Step =
  | { readonly to: number }
  | { readonly act: 'open' | 'close' | 'openSiblings' | 'preview' | 'pick' | 'select' }

export interface Pressed {
  readonly key: string
  readonly shiftKey: boolean
}

/**
 * @param active The index of the active row.
 * @param page Number of visible rows.
 */
export function stepOf({ key }: Pressed, rows: readonly TreeRow[], active: number, page: number): Step | undefined {
  const row = rows[active]
  const last = rows.length - 1
  if (row === undefined) return undefined
  const to = (index: number): Step => ({ to: Math.min(Math.max(index, 0), last) })
  switch (key) {
    case 'ArrowDown':
      return to(active + 1)
    case 'ArrowUp':
      return to(active - 1)
    case 'PageDown':
      return to(active + Math.max(1, page - 1))
    case 'PageUp':
      return to(active - Math.max(1, page - 1))
    case 'Home':
      return to(0)
    case 'End':
      return to(last)
    case 'ArrowRight':
      if (!row.isDirectory) return undefined
      return row.isOpen ? to(active + 1) : { act: 'open' }
    case 'ArrowLeft':
      if (row.isDirectory && row.isOpen && row.kind === 'node') return { act: 'close' }
      return to(Math.max(parentIndex(rows, active), 0))
    case '*':
      return { act: 'openSiblings' }
    case 'Enter':
      return { act: 'preview' }
    case ' ':
      return { act: 'pick' }
  }
  return undefined
}

/** Whether a key types a character for type-ahead: any visible character, also kana. */
export function isTyped(
  event: Pressed & { readonly ctrlKey: boolean; readonly metaKey: boolean; readonly altKey: boolean },
): boolean {
  const { key, ctrlKey, metaKey, altKey } = event
  return !ctrlKey && !metaKey && !altKey && [...key].length === 1 && /[^\s/?*]/u.test(key)
}

/** Folds a text for type-ahead: katakana equals hiragana. */
function foldKana(text: string): string {
  return fold(text).replace(/[\u30a1-\u30f6]/g, (kana) => String.fromCharCode(kana.charCodeAt(0) - 0x60))
}

export interface TypeAhead {
  /** Adds one typed character, and returns the index of the matching row. `undefined`: no name begins with the text. */
  type(character: string, rows: readonly TreeRow[], active: number, now: number): number | undefined
}

/** Maximum time between characters of one type-ahead, in milliseconds. */
const together = 800

export function createTypeAhead(): TypeAhead {
  let typed = ''
  let last = Number.NEGATIVE_INFINITY
  return {
    type: (character, rows, active, now) => {
      typed = now - last > together ? character : typed + character
      last = now
      const folded = foldKana(typed)
      // Repeating one character moves to the next match. More characters keep the row while it matches.
      const isSame = [...folded].every((one) => one === folded[0])
      const wanted = isSame ? (folded[0] ?? '') : folded
      const start = isSame ? active + 1 : active
      for (let step = 0; step < rows.length; step++) {
        const index = (start + step) % rows.length
        const row = rows[index]
        if (row?.kind !== 'node') continue
        const { title, name } = row.resource
        if (foldKana(name).startsWith(wanted) || (title !== undefined && foldKana(title).startsWith(wanted)))
          return index
      }
      return undefined
    },
  }
}
