import { focusSearch } from '../palette/keys.ts'

/** `/` goes to the search, as on the page in a browser. */
export function followKeys(): void {
  document.addEventListener('keydown', (event) => {
    const { key, target, isComposing, ctrlKey, metaKey, altKey } = event
    if (key !== '/' || isComposing || ctrlKey || metaKey || altKey || event.defaultPrevented) return
    if (target instanceof Element && target.closest('input, textarea, select') !== null) return
    event.preventDefault()
    focusSearch()
  })
}
