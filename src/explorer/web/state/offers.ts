import { computed, type Signal, signal } from '@preact/signals'
import { searchPlaces } from '../../../core/found.ts'
import { pagesOf } from '../../../core/kit/pages.ts'
import type { ListedPrompt, Page, ResourceTemplate } from '../../../core/view.ts'
import { connected } from './session.ts'

/** A list of the server: not loaded, all of it, or the reason why it could not be loaded. */
interface Offered<T> {
  readonly state: 'loading' | 'loaded' | 'failed'
  readonly items: readonly T[]
  /** Whether the server has more than these. */
  readonly isPart: boolean
  readonly error?: unknown
}

type Query = { readonly cursor?: string }
type PageAt<T> = (query: Query, options: { readonly signal: AbortSignal }) => Promise<Page<T>>

/** Returns a function that loads a list into a signal. Until it is loaded, the old items are shown. A new load ends an earlier one. */
function createLoad<T>(target: Signal<Offered<T>>, maxPages: number, pages: () => PageAt<T> | undefined) {
  let loading: AbortController | undefined
  return async (): Promise<void> => {
    loading?.abort()
    const controller = new AbortController()
    loading = controller
    const { signal } = controller
    const pageAt = pages()
    try {
      const items: T[] = []
      let isPart = false
      if (pageAt !== undefined)
        for await (const page of pagesOf((query) => pageAt(query, { signal }), { maxPages })) {
          items.push(...page.items)
          isPart = page.nextCursor !== undefined
        }
      if (!signal.aborted) target.value = { state: 'loaded', items, isPart }
    } catch (error) {
      if (!signal.aborted) target.value = { ...target.value, state: 'failed', error }
    }
  }
}

/** The templates of the server. */
export const templates = signal<Offered<ResourceTemplate>>({ state: 'loading', items: [], isPart: false })

/** The searches among them. */
export const places = computed(() => searchPlaces(templates.value.items))

/** Maximum number of pages, because a faulty server may never end a listing. */
const maxTemplatePages = 200
const maxPromptPages = 50

/** Loads all templates. */
export const loadTemplates = createLoad(templates, maxTemplatePages, () => connected().view.templates)

/** The prompts of the server. */
export const prompts = signal<Offered<ListedPrompt>>({ state: 'loading', items: [], isPart: false })

/** Loads all prompts. */
export const loadPrompts = createLoad(prompts, maxPromptPages, () => connected().view.prompts?.list)
