import type { Basket, Count, Picked } from './state.ts'

/** The key of a token count. The tokens of a resource depend on the level of detail and on the format of the context. */
export function countKey({ format }: Basket, { uri, level }: Picked): string {
  return `${format} ${level} ${uri}`
}

export function countOf(basket: Basket, item: Picked): Count | undefined {
  return basket.counts.get(countKey(basket, item))
}

interface Total {
  readonly tokens: number
  /** Number of items that are not counted yet. */
  readonly missing: number
}

/** The tokens of the whole context, from the parts that are counted so far. The counts of parts add up exactly. */
export function totalOf(basket: Basket): Total {
  const counts = basket.items.map((item) => countOf(basket, item))
  const frame = counts.find((count) => count !== undefined && count.failure === undefined)?.frame ?? 0
  return {
    tokens: counts.reduce((sum, count) => sum + (count?.tokens ?? 0), frame),
    missing: counts.filter((count) => count === undefined).length,
  }
}

export function isPicked({ items }: Basket, uri: string): boolean {
  return items.some((item) => item.uri === uri)
}

export function toggled(basket: Basket, uri: string): Basket {
  const items = isPicked(basket, uri)
    ? basket.items.filter((item) => item.uri !== uri)
    : [...basket.items, { uri, level: 'full' as const }]
  return { ...basket, items, at: Math.max(0, Math.min(basket.at, items.length - 1)) }
}

/** Adds the resources that are missing; removes all of them if none is missing. */
export function toggledAll(basket: Basket, uris: readonly string[]): Basket {
  const missing = uris.filter((uri) => !isPicked(basket, uri))
  if (missing.length > 0)
    return { ...basket, items: [...basket.items, ...missing.map((uri) => ({ uri, level: 'full' as const }))] }
  const all = new Set(uris)
  const items = basket.items.filter(({ uri }) => !all.has(uri))
  return { ...basket, items, at: Math.max(0, Math.min(basket.at, items.length - 1)) }
}

const levels = ['link', 'outline', 'full'] as const

/** How much of the chosen resource is taken: a step more, or less. */
export function levelled(basket: Basket, by: 1 | -1): Basket {
  const items = basket.items.map((item, index) => {
    const at = levels.indexOf(item.level === 'windows' ? 'outline' : item.level)
    const level = levels[Math.max(0, Math.min(levels.length - 1, at + by))]
    return index === basket.at && level !== undefined ? { ...item, level } : item
  })
  return { ...basket, items }
}

const formats = ['markdown', 'xml', 'json'] as const

export function reformatted(basket: Basket): Basket {
  return { ...basket, format: formats[(formats.indexOf(basket.format) + 1) % formats.length] ?? 'markdown' }
}

export const endings = { markdown: 'md', xml: 'xml', json: 'json' } as const

/** A number of tokens as people say it: `32k`, `200000`. `undefined`: it is none. */
export function parseTokens(text: string): number | undefined {
  const match = /^(\d{1,9}(?:\.\d{1,3})?)([km]?)$/i.exec(text.trim().replaceAll(',', ''))
  if (match === null) return undefined
  const unit = (match[2] ?? '').toLowerCase()
  const tokens = Math.round(Number(match[1]) * (unit === 'k' ? 1000 : unit === 'm' ? 1_000_000 : 1))
  return tokens >= 1 && tokens <= 100_000_000 ? tokens : undefined
}
