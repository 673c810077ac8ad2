import '../style/theme.css'
import '../style/layout.css'
import { effect } from '@preact/signals'
import { render } from 'preact'
import { focusSearch } from '../palette/keys.ts'
import { followBrowse } from '../state/browse.ts'
import { followHealing } from '../state/healing.ts'
import { followChanges } from '../state/live.ts'
import { followAddress } from '../state/place.ts'
import { start } from '../state/session.ts'
import { language } from '../words/language.ts'
import { App } from './app.tsx'
import { ask, hostCapabilities, hostContext, isObject, tell } from './bridge.ts'
import { stepTo } from './browser.ts'
import { connectThroughHost } from './connect.ts'
import { followPicks } from './given.ts'

/** Height of the page in pixels, if the host lets the page decide. */
const ownHeight = 560

/** The colours of the host that the page uses, each with the colour of the page that it replaces. */
const colours = {
  '--color-background-primary': '--paper',
  '--color-background-secondary': '--paper-2',
  '--color-background-tertiary': '--paper-3',
  '--color-text-primary': '--ink',
  '--color-text-secondary': '--ink-2',
  '--color-border-primary': '--line',
} as const

/** Follows theme, colours, language and size of the host. */
function followLook(): void {
  effect(() => {
    const { theme, locale, styles } = hostContext.value
    const root = document.documentElement
    if (theme === 'light' || theme === 'dark') root.dataset.theme = theme
    if (typeof locale === 'string') language.value = /^ja\b/i.test(locale) ? 'ja' : 'en'
    root.lang = language.value
    takeColours(root, isObject(styles) && isObject(styles.variables) ? styles.variables : {})
  })
  effect(() => {
    const { containerDimensions, displayMode } = hostContext.value
    const space = isObject(containerDimensions) ? containerDimensions : {}
    const root = document.documentElement
    const isGiven = typeof space.height === 'number' || displayMode === 'fullscreen'
    const most = typeof space.maxHeight === 'number' && space.maxHeight > 0 ? space.maxHeight : ownHeight
    const height = Math.min(ownHeight, most)
    root.style.height = isGiven ? '100vh' : `${height}px`
    if (!isGiven) tell('ui/notifications/size-changed', { width: root.clientWidth, height })
  })
}

/** Takes all of the colours or none, because colours of two themes may not contrast. */
function takeColours(root: HTMLElement, given: Readonly<Record<string, unknown>>): void {
  const pairs = Object.entries(colours).map(([name, own]) => [own, given[name]] as const)
  const isWhole = pairs.every(([, value]) => typeof value === 'string' && CSS.supports('color', value))
  for (const [own, value] of pairs)
    if (isWhole) root.style.setProperty(own, String(value))
    else root.style.removeProperty(own)
}

const page = document.getElementById('page')
if (page === null) throw new Error('The page has no place to draw in.')

followAddress()
followBrowse()
followHealing()
followChanges()
followKeys()
followLinks()
render(<App />, page)
void start(connectThroughHost).then(() => {
  followLook()
  followPicks()
})

/** `/` goes to the search, as on the page in a browser. */
function followKeys(): void {
  document.addEventListener('keydown', (event) => {
    const { key, target, isComposing, ctrlKey, metaKey, altKey } = event
    if (key !== '/' || isComposing || ctrlKey || metaKey || altKey || event.defaultPrevented) return
    if (target instanceof Element && target.closest('input, textarea, select') !== null) return
    event.preventDefault()
    focusSearch()
  })
}

/** Follows links within the page, and asks the host to open all others. */
function followLinks(): void {
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
