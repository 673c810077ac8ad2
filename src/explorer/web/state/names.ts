import { signal } from '@preact/signals'
import type { Resource, View } from '../../../core/view.ts'

/** Maximum number of names kept for matching with every key. Others are found by the server's search. */
const maxNames = 20_000
/** How long names are held before they are loaded anew, in milliseconds. */
const keptMs = 60_000

export interface Names {
  readonly resources: readonly Resource[]
  readonly state: 'loading' | 'loaded'
  /** Whether the server has more names than these. */
  readonly isPart: boolean
}

/** The names of the server's resources, as far as they are loaded. */
export const names = signal<Names>({ resources: [], state: 'loading', isPart: false })

let loadedUntil = 0
let loadedFrom: View | undefined
let loading: Promise<void> | undefined

/** Loads the names page by page, unless they are there already. One load runs at a time. */
export function loadNames(view: View): Promise<void> {
  if (loadedFrom === view && loadedUntil > Date.now()) return Promise.resolve()
  loading ??= load(view).finally(() => {
    loading = undefined
  })
  return loading
}

async function load(view: View): Promise<void> {
  const isAnew = loadedFrom !== view
  const resources: Resource[] = []
  let cursor: string | undefined
  do {
    const page = await view.list(cursor === undefined ? {} : { cursor })
    resources.push(...page.items)
    cursor = page.nextCursor
    // Names that are there already stay until all new ones are.
    if (isAnew || cursor === undefined) names.value = { resources: [...resources], state: 'loading', isPart: false }
  } while (cursor !== undefined && resources.length < maxNames)
  names.value = { resources, state: 'loaded', isPart: cursor !== undefined }
  loadedFrom = view
  loadedUntil = Date.now() + keptMs
}
