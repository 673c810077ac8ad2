import { signal } from '@preact/signals'
import type { Resource, View } from '../../../core/view.ts'

/** Maximum number of names that are filtered on every key. The server's search finds further ones. */
const maxNames = 20_000
/** Lifetime of the cached names, in milliseconds. */
const keptMs = 60_000

export interface Names {
  readonly resources: readonly Resource[]
  readonly state: 'loading' | 'loaded'
  /** Whether the server has more names than these. */
  readonly isPart: boolean
}

/** The loaded names of the server's resources. */
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
    // The old names stay until all new ones are loaded.
    if (isAnew || cursor === undefined) names.value = { resources: [...resources], state: 'loading', isPart: false }
  } while (cursor !== undefined && resources.length < maxNames)
  names.value = { resources, state: 'loaded', isPart: cursor !== undefined }
  loadedFrom = view
  loadedUntil = Date.now() + keptMs
}
