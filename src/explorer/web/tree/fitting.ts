import { mostPicked } from '../state/basket.ts'
import type { Below } from '../state/below.ts'
import { browse, progress, selected } from '../state/browse.ts'
import { isBelow } from './grown.ts'

/** The resources that fit the filter, as far as the basket has room for them. `folder`: only those below it. */
export function fitting(folder?: string): Below {
  const resources = browse.value?.listed.columns.resources ?? []
  const files = []
  let isPart = progress.value.state === 'loading'
  for (const row of selected.value.rows) {
    const resource = resources[row]
    if (resource === undefined || (folder !== undefined && !isBelow(resource.uri, folder))) continue
    if (files.length > mostPicked) {
      isPart = true
      break
    }
    files.push(resource)
  }
  return { files, counts: new Map(), isPart }
}
