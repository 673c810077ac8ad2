import { effect } from '@preact/signals'
import { language } from '../words/language.ts'
import { hostContext, isObject, tell } from './bridge.ts'

/** Height of the page where the host leaves it to the page, in pixels. */
const ownHeight = 560

/** The colours of the host that the page takes over, each with the one of the page that it stands for. */
const colours = {
  '--color-background-primary': '--paper',
  '--color-background-secondary': '--paper-2',
  '--color-background-tertiary': '--paper-3',
  '--color-text-primary': '--ink',
  '--color-text-secondary': '--ink-2',
  '--color-border-primary': '--line',
} as const

/** Follows theme, colours, language and space of the host. */
export function followLook(): void {
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

/** Takes all of the colours or none: those of one theme do not go together with those of another. */
function takeColours(root: HTMLElement, given: Readonly<Record<string, unknown>>): void {
  const pairs = Object.entries(colours).map(([name, own]) => [own, given[name]] as const)
  const isWhole = pairs.every(([, value]) => typeof value === 'string' && CSS.supports('color', value))
  for (const [own, value] of pairs)
    if (isWhole) root.style.setProperty(own, String(value))
    else root.style.removeProperty(own)
}
