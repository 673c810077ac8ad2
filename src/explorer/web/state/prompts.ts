import { signal } from '@preact/signals'
import type { ListedPrompt } from '../../../core/view.ts'
import { onPromptsChange } from './live.ts'
import { connected } from './session.ts'

/** The prompts of the server: not loaded, all of them, or the reason why they could not be listed. */
interface Prompts {
  readonly state: 'loading' | 'loaded' | 'failed'
  readonly items: readonly ListedPrompt[]
  /** Whether the server has more prompts than these. */
  readonly isPart: boolean
  readonly error?: unknown
}

export const prompts = signal<Prompts>({ state: 'loading', items: [], isPart: false })

/** Maximum number of pages of prompts that are requested. */
const maxPages = 50

let loading: AbortController | undefined
let isFollowed = false

/** Loads all prompts, and loads them again whenever they change. Until then the old ones are shown. */
export async function loadPrompts(): Promise<void> {
  if (!isFollowed) onPromptsChange(() => void loadPrompts())
  isFollowed = true
  loading?.abort()
  const controller = new AbortController()
  loading = controller
  const { signal: left } = controller
  const { prompts: source } = connected().view
  try {
    const items: ListedPrompt[] = []
    let cursor: string | undefined
    for (let pages = 0; source !== undefined && pages < maxPages; pages++) {
      const page = await source.list(cursor === undefined ? {} : { cursor }, { signal: left })
      items.push(...page.items)
      cursor = page.nextCursor
      if (cursor === undefined) break
    }
    if (!left.aborted) prompts.value = { state: 'loaded', items, isPart: cursor !== undefined }
  } catch (error) {
    if (!left.aborted) prompts.value = { ...prompts.value, state: 'failed', error }
  }
}
