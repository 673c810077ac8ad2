import { isFolder } from '../../../browse/tree.ts'
import { foldText } from '../../../core/kit/matching.ts'
import type { Resource } from '../../../core/view.ts'
import { addFolder, basket, removeFromBasket, toggleFile } from '../basket/picked.ts'
import type { TreeRow } from '../listing/rows.ts'
import { indexAfterKey } from '../shell/keys.ts'

/** Effect of a key in the tree (WAI-ARIA Authoring Practices, tree view): a row to go to, or an action on the active row. */
type KeyEffect = { readonly to: number } | { readonly act: Act }
type Act = 'open' | 'close' | 'openSiblings' | 'preview' | 'pick'

const acts: Readonly<Record<string, Act>> = { '*': 'openSiblings', Enter: 'preview', ' ': 'pick' }

/** Returns the effect of a key. `active` is the index of the active row, and `page` the number of visible rows. */
export function keyEffect(key: string, rows: readonly TreeRow[], active: number, page: number): KeyEffect | undefined {
  const row = rows[active]
  if (row === undefined) return undefined
  const to = indexAfterKey(key, active, rows.length, Math.max(1, page - 1))
  if (to !== undefined) return { to }
  if (key === 'ArrowRight') {
    if (!row.isDirectory) return undefined
    return row.isOpen ? { to: Math.min(active + 1, rows.length - 1) } : { act: 'open' }
  }
  if (key === 'ArrowLeft') {
    if (row.isDirectory && row.isOpen && row.kind === 'node') return { act: 'close' }
    return { to: Math.max(parentIndex(rows, active), 0) }
  }
  const act = acts[key]
  return act === undefined ? undefined : { act }
}

/** Whether a key types a character for type-ahead: any visible character except `/`, `?` and `*`. */
export function isTyped(event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey'>): boolean {
  const { key, ctrlKey, metaKey, altKey } = event
  return !ctrlKey && !metaKey && !altKey && [...key].length === 1 && /[^\s/?*]/u.test(key)
}

/** Folds a text for type-ahead: katakana equals hiragana. */
function foldKana(text: string): string {
  return foldText(text).replace(/[\u30a1-\u30f6]/g, (kana) => String.fromCharCode(kana.charCodeAt(0) - 0x60))
}

const typeAheadMs = 800

/** Returns a function that adds one typed character, and returns the index of the matching row. `undefined`: no name or title begins with the typed text. */
export function createTypeAhead() {
  let typed = ''
  let last = Number.NEGATIVE_INFINITY
  return (character: string, rows: readonly TreeRow[], active: number, now: number): number | undefined => {
    typed = now - last > typeAheadMs ? character : typed + character
    last = now
    const folded = foldKana(typed)
    // Repeating one character moves to the next match. Different characters keep the row while it matches.
    const isSame = [...folded].every((one) => one === folded[0])
    const word = isSame ? (folded[0] ?? '') : folded
    const start = isSame ? active + 1 : active
    for (let step = 0; step < rows.length; step++) {
      const index = (start + step) % rows.length
      const row = rows[index]
      if (row?.kind !== 'node') continue
      const { title, name } = row.resource
      if (foldKana(name).startsWith(word) || (title !== undefined && foldKana(title).startsWith(word))) return index
    }
    return undefined
  }
}

const most = 2000

/** A folder in a range: the resources that it added to the basket, once they are known. */
interface Taken {
  readonly controller: AbortController
  uris: readonly string[]
}

/** Creates a picker of the rows from the one at which Shift was first held to the current one. Of a folder, it picks everything below. */
export function createRangePicker() {
  let anchor: number | undefined
  /** URIs picked by this range: they are unpicked when the range shrinks. */
  let own = new Set<string>()
  let folders = new Map<string, Taken>()
  /** Resolves when all folders so far have been added, or failed. */
  let adding: Promise<unknown> = Promise.resolve()

  const takeFolder = (uri: string) => {
    const claim: Taken = { controller: new AbortController(), uris: [] }
    folders.set(uri, claim)
    adding = addFolder(uri, claim.controller.signal, adding).then(
      (uris) => {
        claim.uris = uris
      },
      // A folder that does not answer adds nothing; its row shows the reason when it is opened.
      () => {},
    )
  }
  const leaveFolder = (uri: string) => {
    const load = folders.get(uri)
    folders.delete(uri)
    load?.controller.abort()
    for (const one of load?.uris ?? []) removeFromBasket(one)
  }

  return {
    /** Extends the range to the row `to`. `resourceAt` returns the pickable resource of a row, if any. */
    extend: (resourceAt: (index: number) => Resource | undefined, from: number, to: number) => {
      anchor ??= from
      const selection = new Map<string, Resource>()
      for (let index = Math.min(anchor, to); index <= Math.max(anchor, to) && selection.size < most; index++) {
        const resource = resourceAt(index)
        if (resource !== undefined) selection.set(resource.uri, resource)
      }
      const pickedUris = new Set(basket.value.map(({ resource }) => resource.uri))
      // Add the rows nearest to the start of the range first, in case the basket cannot hold all of them.
      for (const [uri, resource] of anchor <= to ? selection : [...selection].reverse()) {
        if (isFolder(resource)) {
          if (!folders.has(uri)) takeFolder(uri)
        } else if (!pickedUris.has(uri)) {
          own.add(uri)
          toggleFile(resource)
        }
      }
      for (const uri of [...folders.keys()]) if (!selection.has(uri)) leaveFolder(uri)
      for (const { resource } of basket.value) {
        if (selection.has(resource.uri) || !own.delete(resource.uri)) continue
        toggleFile(resource)
      }
    },
    end: () => {
      anchor = undefined
      own = new Set()
      folders = new Map()
    },
  }
}

export function parentIndex(rows: readonly TreeRow[], index: number): number {
  const level = rows[index]?.level ?? 1
  for (let at = index - 1; at >= 0; at--) if ((rows[at]?.level ?? 0) < level) return at
  return -1
}

const numbers = new Map<string, number>()

/** The `id` of the element of a row: short, and stable while the page is open. */
export function rowElementId(of: string, key: string): string {
  let number = numbers.get(key)
  if (number === undefined) {
    number = numbers.size
    numbers.set(key, number)
  }
  return `${of}-${number}`
}

/** Returns the action of the pressed part of a row: a row in a tree or grid may not contain buttons. */
export function rowAction({ target }: Event): string | undefined {
  return target instanceof Element ? (target.closest('[data-do]')?.getAttribute('data-do') ?? undefined) : undefined
}

/** Returns the index of the active row. If that row disappeared, the row at its last index becomes active. */
export function indexOfActive(
  uri: string | undefined,
  count: number,
  keyOf: (index: number) => string,
  last: { current: number },
): number {
  if (uri !== undefined && keyOf(last.current) !== uri)
    for (let index = 0; index < count; index++) {
      if (keyOf(index) !== uri) continue
      last.current = index
      break
    }
  return Math.min(last.current, count - 1)
}
