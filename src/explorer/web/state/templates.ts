import { computed, signal } from '@preact/signals'
import { searchPlaces } from '../../../core/found.ts'
import type { ResourceTemplate } from '../../../core/view.ts'
import { connected } from './session.ts'

/** The templates of the server: not loaded, all of them, or the reason why they could not be loaded. */
interface Templates {
  readonly state: 'loading' | 'loaded' | 'failed'
  readonly items: readonly ResourceTemplate[]
  readonly error?: unknown
}

export const templates = signal<Templates>({ state: 'loading', items: [] })

/** The searches among them. */
export const places = computed(() => searchPlaces(templates.value.items))

/** Maximum number of pages, because a faulty server may never end a listing. */
const mostPages = 200

let loading: AbortController | undefined

/** Loads all pages of templates. Until then the old ones are shown. */
export async function loadTemplates(): Promise<void> {
  loading?.abort()
  const controller = new AbortController()
  loading = controller
  const { signal } = controller
  const { view } = connected()
  try {
    const items: ResourceTemplate[] = []
    let cursor: string | undefined
    for (let pages = 0; pages < mostPages; pages++) {
      const page = await view.templates(cursor === undefined ? {} : { cursor }, { signal })
      items.push(...page.items)
      cursor = page.nextCursor
      if (cursor === undefined) break
    }
    templates.value = { state: 'loaded', items }
  } catch (error) {
    if (!signal.aborted) templates.value = { ...templates.value, state: 'failed', error }
  }
}
