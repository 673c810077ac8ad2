import { signal } from '@preact/signals'
import { keep as keepText, readKept } from './kept.ts'

const key = 'hikidashi.recent-searches'
/** Maximum number of stored searches, the latest first. */
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
  keepText(key, JSON.stringify(queries))
}

function stored(): readonly string[] {
  try {
    const value: unknown = JSON.parse(readKept(key) ?? '[]')
    return Array.isArray(value) ? value.filter((one) => typeof one === 'string').slice(0, maxKept) : []
  } catch {
    return []
  }
}
