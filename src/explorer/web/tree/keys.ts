import { isFolder } from '../../../browse/folders.ts'
import { fold } from '../../../core/kit/matching.ts'
import type { Resource } from '../../../core/view.ts'
import { addFolder } from '../basket/adding.ts'
import { basket, remove, toggle } from '../state/basket.ts'
import { parentIndex, type TreeRow } from './rows.ts'

/** Effect of a key in the tree (WAI-ARIA Authoring Practices, tree view): a row to go to, or an action on the active row. */
type Step =
  | { readonly to: number }
  | { readonly act: 'open' | 'close' | 'openSiblings' | 'preview' | 'pick' | 'select' }

interface Pressed {
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

interface TypeAhead {
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

/** Picks the rows from where Shift was first held to the current row. For a folder, everything below it. */
interface Range {
  /** @param resourceAt Returns the pickable resource of a row, if any. */
  extend(resourceAt: (index: number) => Resource | undefined, from: number, to: number): void
  end(): void
}

/** Maximum number of rows picked at once. */
const most = 2000

/** A folder in a range: the resources that it added to the basket, once they are known. */
interface Taken {
  readonly controller: AbortController
  uris: readonly string[]
}

export function createRange(): Range {
  let anchor: number | undefined
  /** URIs picked by this range: they are unpicked when the range shrinks. */
  let own = new Set<string>()
  let folders = new Map<string, Taken>()
  /** Resolves when all folders so far have been added, or failed. */
  let added: Promise<unknown> = Promise.resolve()

  const takeFolder = (uri: string) => {
    const taken: Taken = { controller: new AbortController(), uris: [] }
    folders.set(uri, taken)
    added = addFolder(uri, taken.controller.signal, added).then(
      (uris) => {
        taken.uris = uris
      },
      // A folder that does not answer adds nothing; its row shows the reason when it is opened.
      () => {},
    )
  }
  const leaveFolder = (uri: string) => {
    const taken = folders.get(uri)
    folders.delete(uri)
    taken?.controller.abort()
    for (const one of taken?.uris ?? []) remove(one)
  }

  return {
    extend: (resourceAt, from, to) => {
      anchor ??= from
      const wanted = new Map<string, Resource>()
      for (let index = Math.min(anchor, to); index <= Math.max(anchor, to) && wanted.size < most; index++) {
        const resource = resourceAt(index)
        if (resource !== undefined) wanted.set(resource.uri, resource)
      }
      const picked = new Set(basket.value.map(({ resource }) => resource.uri))
      // Start of the range: if the basket cannot hold all, the rows nearest to it come first.
      for (const [uri, resource] of anchor <= to ? wanted : [...wanted].reverse()) {
        if (isFolder(resource)) {
          if (!folders.has(uri)) takeFolder(uri)
        } else if (!picked.has(uri)) {
          own.add(uri)
          toggle(resource)
        }
      }
      for (const uri of [...folders.keys()]) if (!wanted.has(uri)) leaveFolder(uri)
      for (const { resource } of basket.value) {
        if (wanted.has(resource.uri) || !own.delete(resource.uri)) continue
        toggle(resource)
      }
    },
    end: () => {
      anchor = undefined
      own = new Set()
      folders = new Map()
    },
  }
}
