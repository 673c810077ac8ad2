import { ask, hostCapabilities, isObject } from './bridge.ts'
import { stepTo } from './steps.ts'

/** Follows the links of the page within it, and asks the host to open all others. */
export function followLinks(): void {
  const onClick = (event: MouseEvent) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    const href = link?.getAttribute('href')
    if (href === null || href === undefined) return
    event.preventDefault()
    if (href.startsWith('#')) {
      if (event.type === 'click' && href.length > 1) stepTo(href)
    } else if (/^https?:/i.test(href) && isObject(hostCapabilities.value.openLinks))
      ask('ui/open-link', { url: href }).catch(() => {})
  }
  document.addEventListener('click', onClick)
  document.addEventListener('auxclick', onClick)
}
