import { signal } from '@preact/signals'

const key = 'hikidashi.recent-searches'
/** How many searches are kept, the latest first. */
const maxKept = 8
const maxCharacters = 200

/** Searches in this browser, the latest first. */
export const recent = signal<readonly string[]>(stored())

/** Puts a search at the head of the list. */
export function remember(query: string): void {
  const text = query.trim().slice(0, maxCharacters)
  if (text === '') return
  keep([text, ...recent.value.filter((one) => one !== text)].slice(0, maxKept))
}

export function forgetAll(): void {
  keep([])
}

function keep(queries: readonly string[]): void {
  recent.value = queries
  try {
    localStorage.setItem(key, JSON.stringify(queries))
  } catch {
    // Where nothing may be kept, the list holds as long as the page.
  }
}

function stored(): readonly string[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? '[]')
    return Array.isArray(value) ? value.filter((one) => typeof one === 'string').slice(0, maxKept) : []
  } catch {
    return []
  }
}
