import { computed, effect, signal } from '@preact/signals'
import {
  type BasketItem,
  type BasketLevel,
  contentLevels,
  planBasket,
  type TokenCost,
  usableBudget,
} from '../../../browse/basket.ts'
import { lastSegment, resourcesOf } from '../../../client/wire.ts'
import { jsonIn, objectOf } from '../../../core/kit/object.ts'
import { readStoredText, storeText } from '../state/browser.ts'
import { onResourceChange } from '../state/live.ts'
import { navigate, route } from '../state/route.ts'
import { connection } from '../state/session.ts'
import {
  type AssemblySettings,
  assembleToolName,
  type BasketFormat,
  basketFormats,
  requestBasketCosts,
  type TokenEncoding,
  tokenEncodings,
} from './ask.ts'
import { addToBasket, basket } from './picked.ts'

const settingsKey = 'hikidashi.basket.settings'
/** Servers at one origin share the storage of the browser, so the key has the path and the name. */
const basketKey = (name: string) => `hikidashi.basket.${location.pathname}.${name}`

export const basketSettings = signal<AssemblySettings>(readSettings())
export const tokenCosts = signal<ReadonlyMap<string, TokenCost>>(new Map())
const frame = signal(0)
export const isCounting = signal(false)
export const countingError = signal<unknown>(undefined)
/** URIs of items that have changed since they were first counted. */
export const staleItems = signal<ReadonlySet<string>>(new Set())

/** Whether the server can count tokens and assemble contexts. */
export const canAssemble = computed(() => connection.value?.tools.has(assembleToolName) === true)

/** Current levels and tokens of the basket. */
export const basketPlan = computed(() =>
  planBasket(basket.value, tokenCosts.value, frame.value, usableBudget(basketSettings.value.budget)),
)

let wasStarted = false

export function startBasket(): void {
  if (wasStarted) return
  wasStarted = true
  const name = connection.peek()?.server.name ?? ''
  if (basket.peek().length === 0) basket.value = parseStoredBasket(readStoredText(basketKey(name)))
  effect(() => storeText(basketKey(name), formatStoredBasket(basket.value)))
  effect(() => storeText(settingsKey, JSON.stringify({ ...basketSettings.value, purpose: undefined })))
  effect(takePicks)
  effect(countWhatIsNew)
  watchPicked()
}

/** Adds the items of a shared link, and removes them from the permalink. */
function takePicks(): void {
  const { picks } = route.value
  if (picks === undefined) return
  addToBasket(parsePicks(picks))
  navigate({ picks: undefined, basket: '1' }, { replace: true })
}

const debounceMs = 150

let countText = ''
let timer: ReturnType<typeof setTimeout> | undefined
let asking: AbortController | undefined

/** Counts the tokens of items without a count. All counts are dropped when the purpose, the encoding or the format changes. */
function countWhatIsNew(): void {
  const { encoding, format, purpose } = basketSettings.value
  const of = JSON.stringify([encoding, format, purpose])
  if (of !== countText) {
    countText = of
    tokenCosts.value = new Map()
  }
  const costs = tokenCosts.value
  const fresh = basket.value.filter(({ resource }) => !costs.has(resource.uri))
  clearTimeout(timer)
  asking?.abort()
  const server = connection.value
  if (fresh.length === 0 || server === undefined || !canAssemble.value) {
    isCounting.value = false
    countingError.value = undefined
    return
  }
  isCounting.value = true
  timer = setTimeout(async () => {
    const controller = new AbortController()
    asking = controller
    try {
      const newCosts = await requestBasketCosts(server, fresh, basketSettings.peek(), controller.signal)
      if (controller.signal.aborted) return
      frame.value = newCosts.frame
      countingError.value = undefined
      tokenCosts.value = new Map([...tokenCosts.peek(), ...newCosts.costs])
    } catch (error) {
      if (controller.signal.aborted) return
      countingError.value = error
      isCounting.value = false
    }
  }, debounceMs)
}

export function countAgain(): void {
  countingError.value = undefined
  tokenCosts.value = new Map(tokenCosts.value)
}

/** Counts changed items again, and marks them. */
function watchPicked(): void {
  const watched = new Map<string, () => void>()
  effect(() => {
    const uris = new Set(basket.value.map(({ resource }) => resource.uri))
    for (const [uri, end] of watched)
      if (!uris.has(uri)) {
        end()
        watched.delete(uri)
      }
    for (const uri of uris)
      if (!watched.has(uri))
        watched.set(
          uri,
          onResourceChange(uri, () => forget(uri)),
        )
  })
}

function forget(uri: string): void {
  if (!tokenCosts.peek().has(uri)) return
  staleItems.value = new Set([...staleItems.peek(), uri])
  tokenCosts.value = new Map([...tokenCosts.peek()].filter(([one]) => one !== uri))
}

function readSettings(): AssemblySettings {
  const otherwise: AssemblySettings = { budget: 32_000, encoding: 'o200k_base', format: 'xml', purpose: '' }
  try {
    const { budget, encoding, format } = objectOf(JSON.parse(readStoredText(settingsKey) ?? 'null'))
    return {
      budget: typeof budget === 'number' && Number.isSafeInteger(budget) && budget > 0 ? budget : otherwise.budget,
      encoding: tokenEncodings.find((one): one is TokenEncoding => one === encoding) ?? otherwise.encoding,
      format: basketFormats.find((one): one is BasketFormat => one === format) ?? otherwise.format,
      purpose: '',
    }
  } catch {
    return otherwise
  }
}

/** Maximum length of a basket in a URL, in characters after escaping, because some programs cut long URLs. */
const mostCharacters = 6000

const isLevel = (text: string): text is BasketLevel => text === 'auto' || contentLevels.some((level) => level === text)

/** Returns the items of a basket as text for a permalink. `undefined`: the text would be too long. */
export function formatPicks(items: readonly BasketItem[]): string | undefined {
  const text = items.map(({ resource, level }) => `${level} ${resource.uri}`).join('\n')
  return encodeURIComponent(text).length > mostCharacters ? undefined : text
}

/** Parses the items of the basket in a permalink. Skips invalid lines. */
export function parsePicks(text: string): readonly BasketItem[] {
  return text.split('\n').flatMap((line) => {
    const [, level = '', uri = ''] = /^(\w+) (\S.*)$/.exec(line) ?? []
    return isLevel(level) && uri !== '' ? [{ resource: { uri, name: lastSegment(uri) }, level }] : []
  })
}

/** Parses a basket stored by the browser. Skips invalid items; other invalid text gives an empty basket. */
export function parseStoredBasket(text: string | null): readonly BasketItem[] {
  const value = jsonIn(text ?? '')
  if (!Array.isArray(value)) return []
  return value.flatMap((item: unknown) => {
    const { level } = objectOf(item)
    const [resource] = resourcesOf([item])
    return resource !== undefined && typeof level === 'string' && isLevel(level) ? [{ resource, level }] : []
  })
}

export function formatStoredBasket(items: readonly BasketItem[]): string {
  return JSON.stringify(
    items.map(({ resource: { uri, name, title, mimeType, size }, level }) => ({
      uri,
      name,
      title,
      mimeType,
      size,
      level,
    })),
  )
}
