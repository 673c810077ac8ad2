import { effect, signal } from '@preact/signals'
import { jsonIn, objectOf, objectsIn, stringItems } from '../../../core/kit/object.ts'
import { language } from '../words/texts.ts'
import { readStoredText, storeText } from './browser.ts'

export type Theme = 'system' | 'light' | 'dark'

export const theme = signal<Theme>('system')

/** The widths of the side panes, in pixels. `undefined`: the default of the style sheet. */
export const paneWidths = signal<{ readonly left?: number; readonly right?: number }>({})

const key = 'hikidashi-explorer'

/** Restores the stored settings of the user, and stores changes. */
export function keepChoices(): void {
  const settings = stored()
  if (settings.language === 'en' || settings.language === 'ja') language.value = settings.language
  if (settings.theme === 'light' || settings.theme === 'dark') theme.value = settings.theme
  paneWidths.value = { ...parsePaneWidth('left', settings.left), ...parsePaneWidth('right', settings.right) }
  const hasLanguage = settings.language === 'en' || settings.language === 'ja'
  const byBrowser = language.value
  effect(() => {
    document.documentElement.lang = language.value
    if (theme.value === 'system') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = theme.value
    const isChosen = hasLanguage || language.value !== byBrowser
    storeText(
      key,
      JSON.stringify({ theme: theme.value, ...paneWidths.value, ...(isChosen ? { language: language.value } : {}) }),
    )
  })
}

function parsePaneWidth(side: 'left' | 'right', value: unknown): { readonly left?: number; readonly right?: number } {
  return typeof value === 'number' && value >= 120 && value <= 4000 ? { [side]: value } : {}
}

function stored(): Readonly<Record<string, unknown>> {
  return objectOf(jsonIn(readStoredText(key) ?? ''))
}

const recentKey = 'hikidashi.recent-searches'
/** Maximum number of stored searches, and of stored resources. */
const maxKept = 8
/** Maximum length of a stored search. */
const maxCharacters = 200

export const recentSearches = signal<readonly string[]>(storedRecent())

export function addRecentSearch(query: string): void {
  const text = query.trim().slice(0, maxCharacters)
  if (text === '') return
  keepRecent([text, ...recentSearches.value.filter((one) => one !== text)].slice(0, maxKept))
}

export function forgetRecentSearches(): void {
  keepRecent([])
}

function keepRecent(queries: readonly string[]): void {
  recentSearches.value = queries
  storeText(recentKey, JSON.stringify(queries))
}

function storedRecent(): readonly string[] {
  const value = jsonIn(readStoredText(recentKey) ?? '')
  return stringItems(value).slice(0, maxKept)
}

/**
 * The key in the browser's storage for the opened resources. It contains the path and the server's name, because all servers at one origin
 * share that storage.
 */
const openedKey = (server: string) => `hikidashi.opened.${location.pathname}.${server}`

/** The resources that were opened last in this browser, the latest first. */
export const openedResources = signal<readonly string[]>([])

export function loadOpened(server: string): void {
  openedResources.value = stringItems(jsonIn(readStoredText(openedKey(server)) ?? '')).slice(0, maxKept)
}

export function noteOpened(server: string, uri: string): void {
  if (uri.length > 2000) return
  loadOpened(server)
  openedResources.value = [uri, ...openedResources.value.filter((one) => one !== uri)].slice(0, maxKept)
  storeText(openedKey(server), JSON.stringify(openedResources.value))
}

/** Removes the opened resources of a server, and the versions that were shown, from this browser. */
export function forgetOpened(server: string): void {
  openedResources.value = []
  storeText(openedKey(server), '[]')
  storeText(lookedKey(server), '[]')
}

/** The version of a text that was shown, and when, in milliseconds since 1970. */
interface Looked {
  readonly uri: string
  readonly version: string
  readonly at: number
}

const lookedKey = (server: string) => `hikidashi.looked.${location.pathname}.${server}`
/** Maximum number of texts whose versions are stored. */
const maxLooked = 100

function lookedAll(server: string): readonly Looked[] {
  return objectsIn(jsonIn(readStoredText(lookedKey(server)) ?? '')).flatMap(({ uri, version, at }) =>
    typeof uri === 'string' && typeof version === 'string' && typeof at === 'number' ? [{ uri, version, at }] : [],
  )
}

export function lastShownVersion(server: string, uri: string): Looked | undefined {
  return lookedAll(server).find((one) => one.uri === uri)
}

/** Stores the version of a shown text. Ignores a URI of more than 2000 characters. */
export function noteShownVersion(server: string, uri: string, version: string): void {
  if (uri.length > 2000) return
  const others = lookedAll(server).filter((one) => one.uri !== uri)
  storeText(lookedKey(server), JSON.stringify([{ uri, version, at: Date.now() }, ...others].slice(0, maxLooked)))
}

const visitedKey = 'hikidashi.visited'
let isFirst: boolean | undefined

/** Whether this browser shows the start page for the first time. The answer stays until the page is loaded again. */
export function isFirstVisit(): boolean {
  isFirst ??= (readStoredText(visitedKey) ?? '') === ''
  storeText(visitedKey, '1')
  return isFirst
}
