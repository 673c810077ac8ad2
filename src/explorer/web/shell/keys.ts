import { effect, signal } from '@preact/signals'
import { readStoredText, storeText } from '../state/browser.ts'
import { navigate, route } from '../state/route.ts'

/** The open dialog above the page. */
export const shownDialog = signal<'palette' | 'help' | undefined>(undefined)

/** The letters that were typed while the palette was still being loaded. */
let typedAhead = ''

/** Returns the letters that were typed while the palette was loading, and forgets them. */
export function takeTypedAhead(): string {
  const text = typedAhead
  typedAhead = ''
  return text
}

const key = 'hikidashi.single-keys'

/** Whether keys without Ctrl or Cmd are active (WCAG 2.1.4: they can be turned off). */
export const hasSingleKeys = signal(true)

const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? '')

/** The name of the modifier key of commands on this system. */
export const commandKey = isMac ? '⌘' : 'Ctrl'

let wasStarted = false

/** Starts to handle the global keys. */
export function startKeys(): void {
  if (wasStarted) return
  wasStarted = true
  hasSingleKeys.value = readStoredText(key) !== 'off'
  effect(() => storeText(key, hasSingleKeys.value ? 'on' : 'off'))
  document.addEventListener('keydown', onKey)
}

function onKey(event: KeyboardEvent): void {
  // While an input method composes, Enter and letters belong to it.
  if (event.isComposing || event.keyCode === 229 || event.defaultPrevented) return
  const command = isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey
  if (command && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') {
    event.preventDefault()
    typedAhead = ''
    shownDialog.value = shownDialog.value === 'palette' ? undefined : 'palette'
    return
  }
  if (shownDialog.value === 'palette' && keepTyped(event)) {
    event.preventDefault()
    return
  }
  if (event.ctrlKey || event.metaKey || event.altKey || shownDialog.value !== undefined) return
  if (!hasSingleKeys.value || isTyping(event.target)) return
  const act = singles[event.key]
  if (act === undefined) return
  event.preventDefault()
  act()
}

/** Stores a key that is typed while the palette is open but still loading. Returns whether it was stored. */
function keepTyped({ key: typed, ctrlKey, metaKey, altKey, target }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey || (target instanceof Element && target.closest('dialog') !== null)) return false
  if (typed === 'Backspace') typedAhead = [...typedAhead].slice(0, -1).join('')
  else if ([...typed].length === 1) typedAhead += typed
  else return false
  return true
}

const singles: Readonly<Record<string, () => void>> = {
  '?': () => {
    shownDialog.value = 'help'
  },
  '/': focusSearch,
}

/** Focuses the search field, and selects its text. */
export function focusSearch(): void {
  const field = document.getElementById('search')
  if (!(field instanceof HTMLInputElement)) return
  field.focus()
  field.select()
}

export function toggleBasket(): void {
  navigate({ basket: route.value.basket === '1' ? undefined : '1' })
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
}

/**
 * Returns the index to which a navigation key moves in a list. `undefined`: the key is not a navigation key.
 *
 * @param page Number of items by which Page Up and Page Down move.
 */
export function indexAfterKey(key: string, at: number, count: number, page: number): number | undefined {
  const targets: Readonly<Record<string, number>> = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    PageDown: at + page,
    PageUp: at - page,
    Home: 0,
    End: count - 1,
  }
  const to = targets[key]
  return to === undefined ? undefined : Math.max(0, Math.min(count - 1, to))
}
