import { type BasketItem, type BasketLevel, levels } from '../state/basket.ts'

/** Maximum length of a URL: some programs cut longer ones. A larger basket must be downloaded. */
const mostCharacters = 6000

const isLevel = (text: string): text is BasketLevel => text === 'auto' || levels.some((level) => level === text)

/** A basket as a permalink. `undefined`: it is too large. */
export function picksOf(items: readonly BasketItem[]): string | undefined {
  const text = items.map(({ resource, level }) => `${level} ${resource.uri}`).join('\n')
  return encodeURIComponent(text).length > mostCharacters ? undefined : text
}

/** Parses the items of the basket in a permalink. */
export function itemsOfPicks(text: string): readonly BasketItem[] {
  return text.split('\n').flatMap((line) => {
    const [, level = '', uri = ''] = /^(\w+) (\S.*)$/.exec(line) ?? []
    return isLevel(level) && uri !== '' ? [{ resource: { uri, name: nameOf(uri) }, level }] : []
  })
}

/** Parses a basket stored by the browser. Invalid text is an empty basket. */
export function itemsOfStored(text: string | null): readonly BasketItem[] {
  let value: unknown
  try {
    value = JSON.parse(text ?? '[]')
  } catch {
    return []
  }
  if (!Array.isArray(value)) return []
  return value.flatMap((item: unknown) => {
    if (typeof item !== 'object' || item === null) return []
    const { uri, name, title, mimeType, size, level } = item as Readonly<Record<string, unknown>>
    if (typeof uri !== 'string' || typeof level !== 'string' || !isLevel(level)) return []
    const resource = {
      uri,
      name: typeof name === 'string' ? name : nameOf(uri),
      ...(typeof title === 'string' ? { title } : {}),
      ...(typeof mimeType === 'string' ? { mimeType } : {}),
      ...(typeof size === 'number' && size >= 0 ? { size } : {}),
    }
    return [{ resource, level }]
  })
}

export function storedOf(items: readonly BasketItem[]): string {
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

function nameOf(uri: string): string {
  const segment =
    uri
      .replace(/[?#].*$/s, '')
      .split('/')
      .at(-1) ?? uri
  try {
    return decodeURIComponent(segment) || uri
  } catch {
    return segment || uri
  }
}
