import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { resolveFolder } from '../../config/folder.ts'
import type { PlannedMount } from '../../config/plan.ts'
import type { Log } from '../../core/log.ts'
import { parseAddress, parseUri } from '../../core/uri.ts'

/** How often resources were changed, as far as repositories of this machine tell. */
export interface Activity {
  readonly changes: (uri: string) => number | undefined
  /** The addresses of the mounts that it is known of. */
  readonly known: readonly string[]
}

/** A mount whose paths are those of a repository, below a prefix. */
interface Place {
  readonly address: string
  readonly repository: string
  readonly prefix: string
}

/** Counts the changes of files in the history: of folders that are repositories, and of repositories that are mounted. */
export async function activityOf(mounts: readonly PlannedMount[], log: Log): Promise<Activity> {
  const places = mounts.flatMap(placeOf)
  if (places.length === 0) return { changes: () => undefined, known: [] }
  const { countActivity } = await import('../../providers/git/activity.ts')
  const counted = await Promise.all(
    places.map(async (place) => ({ ...place, counts: await countActivity({ repository: place.repository, log }) })),
  )
  const known = counted.filter(({ counts }) => counts !== undefined)
  return {
    known: known.map(({ address }) => address),
    changes: (uri) => {
      for (const { address, prefix, counts } of known) {
        if (!uri.startsWith(`${address}/`)) continue
        const path = pathBelow(address, uri)
        return path?.startsWith(prefix) === true ? counts?.get(path.slice(prefix.length)) : undefined
      }
      return undefined
    },
  }
}

function pathBelow(address: string, uri: string): string | undefined {
  try {
    return parseUri(uri).segments.slice(parseAddress(address).segments.length).join('/')
  } catch {
    // A pin that nothing can be at.
    return undefined
  }
}

function placeOf({ address, config, folder }: PlannedMount): readonly Place[] {
  const { text } = parseAddress(address)
  if (config.provider === 'git')
    return [{ address: text, repository: resolveFolder(config.repository, folder), prefix: 'HEAD/' }]
  if (config.provider !== 'files') return []
  const root = resolveFolder(config.root, folder)
  return isThere(join(root, '.git')) ? [{ address: text, repository: root, prefix: '' }] : []
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}
