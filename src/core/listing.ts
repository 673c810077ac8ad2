import { isResourceError, type ResourceError } from './errors.ts'
import type { Mounted } from './mount.ts'
import { createPageBuilder } from './paging.ts'
import type { Context, Principal } from './provider.ts'
import type { CatalogState } from './state.ts'
import type { CacheHint, Page, Resource, ResourceTemplate } from './view.ts'

/** What a catalog lists as a whole: its mounts, all resources, all templates. */
export interface Listing {
  mounts(context: Context): Promise<readonly Resource[]>
  list(cursor: string | undefined, context: Context): Promise<Page<Resource>>
  templates(cursor: string | undefined, context: Context): Promise<Page<ResourceTemplate>>
}

/** Where a listing resumes: strictly after `key` (a path, or the number of a template) in the mount at `address`. */
interface Position {
  readonly page: number
  readonly address: string
  readonly key: string
}

/** What binds a cursor to one listing of one principal. A change of roles ends it. */
export function cursorScope(listing: string, principal: Principal): readonly string[] {
  return [listing, principal.id, ...[...principal.roles].sort()]
}

/** About how many bytes of JSON a resource takes. Text may need three bytes a character, a URI is ASCII. */
export function sizeOf(item: {
  readonly uri?: string
  readonly title?: string
  readonly description?: string
}): number {
  return 220 + 4 * (item.uri?.length ?? 0) + 3 * ((item.title?.length ?? 0) + (item.description?.length ?? 0))
}

export function createListing(state: CatalogState): Listing {
  const { mounts, seal, paging } = state

  const open = (cursor: string | undefined, scope: readonly string[]): Position | undefined => {
    if (cursor === undefined) return undefined
    const [page, address = '', key = ''] = JSON.parse(seal.open(scope, cursor)) as [number, string?, string?]
    return { page, address, key }
  }

  /** The mounts from a position on, each with the key to resume after. One that was unmounted since is passed over. */
  const from = (position: Position | undefined): readonly { mount: Mounted; after?: string }[] => {
    if (position === undefined) return mounts.map((mount) => ({ mount }))
    const start = Buffer.from(position.address)
    return mounts.flatMap((mount) => {
      const order = Buffer.compare(Buffer.from(mount.address.text), start)
      if (order < 0) return []
      return [order === 0 ? { mount, after: position.key } : { mount }]
    })
  }

  const list: Listing['list'] = async (cursor, context) => {
    const scope = cursorScope('list', context.principal)
    const position = open(cursor, scope)
    const page = position?.page ?? 0
    const builder = createPageBuilder<Resource>(paging, page)
    const failed: { mount: Mounted; error: ResourceError }[] = []
    // What the next page resumes after: the last entry on this one, or the last that was looked at.
    let last: readonly [address: string, path: string] | undefined
    const end = () => finish(seal.seal(scope, JSON.stringify([page + 1, ...(last ?? ['', ''])])))
    const finish = (nextCursor?: string): Page<Resource> => ({
      items: builder.items,
      ...(nextCursor === undefined ? {} : { nextCursor }),
      cache: sharedCache(mounts),
      ...(missing().length === 0 ? {} : { unavailable: missing() }),
    })
    // Of a mount of which nothing may be seen, not even this is told. Whether something may, only its source knows.
    const missing = () =>
      failed.filter(({ mount }) => mount.access(context.principal, '')).map(({ mount }) => mount.address.text)

    for (const { mount, after } of from(position)) {
      try {
        for await (const entry of mount.provider.list(after === undefined ? {} : { after }, context)) {
          context.signal.throwIfAborted()
          if (!builder.look()) return end()
          if (mount.access(context.principal, entry.path)) {
            const resource = mount.resourceOf(entry)
            if (!builder.add(resource, sizeOf(resource))) return end()
          }
          last = [mount.address.text, entry.path]
        }
      } catch (error) {
        // One source that is down does not take the others with it; the page says which one is missing.
        if (!isResourceError(error, 'unavailable')) throw error
        state.log('warn', 'a mount is left out of a listing: it is unavailable', {
          mount: mount.address.text,
          error: error.message,
        })
        failed.push({ mount, error })
      }
    }
    const [first] = failed
    if (first !== undefined && failed.length === mounts.length) throw first.error
    return finish()
  }

  const templates: Listing['templates'] = async (cursor, context) => {
    const scope = cursorScope('templates', context.principal)
    const position = open(cursor, scope)
    const page = position?.page ?? 0
    const builder = createPageBuilder<ResourceTemplate>(paging, page)
    const cache = sharedCache(mounts)
    let last: readonly [address: string, index: string] = ['', '']
    for (const { mount, after } of from(position)) {
      const all = await whenAvailable(mount, state, async () =>
        (await isVisible(mount, state, context)) ? mount.templates(context) : [],
      )
      for (let index = after === undefined ? 0 : Number(after) + 1; index < all.length; index++) {
        const template = all[index]
        if (template === undefined) break
        const { template: _, ...facts } = template.declared
        const item = { uriTemplate: template.uriTemplate, ...facts }
        if (!builder.add(item, sizeOf(item) + 4 * item.uriTemplate.length))
          return { items: builder.items, nextCursor: seal.seal(scope, JSON.stringify([page + 1, ...last])), cache }
        last = [mount.address.text, String(index)]
      }
    }
    return { items: builder.items, cache }
  }

  return {
    list,
    templates,
    mounts: async (context) => {
      const visible: Resource[] = []
      for (const mount of mounts) {
        const seen = await whenAvailable(mount, state, () => isVisible(mount, state, context))
        if (seen === true) visible.push(mount.root)
      }
      return visible
    },
  }
}

/** Whether the principal may know that a mount is there: it may see the root, or something in it. */
export async function isVisible(mount: Mounted, state: CatalogState, context: Context): Promise<boolean> {
  if (!mount.restricted || mount.access(context.principal, '')) return true
  let looked = 0
  for await (const entry of mount.provider.list({}, context)) {
    if (mount.access(context.principal, entry.path)) return true
    if (++looked >= state.paging.scan) break
  }
  return false
}

/** What `ask` answers; an empty array when the source is down, which the log then says. */
async function whenAvailable<T>(mount: Mounted, state: CatalogState, ask: () => Promise<T>): Promise<T | readonly []> {
  try {
    return await ask()
  } catch (error) {
    if (!isResourceError(error, 'unavailable')) throw error
    state.log('warn', 'a mount does not answer', { mount: mount.address.text, error: error.message })
    return []
  }
}

/** One hint for answers that several mounts have a part in: all pages of a list share one scope. */
function sharedCache(mounts: readonly Mounted[]): CacheHint {
  const hints = mounts.map((mount) => mount.cache)
  return {
    ttlMs: hints.length === 0 ? 0 : Math.min(...hints.map((hint) => hint.ttlMs)),
    scope: hints.length > 0 && hints.every((hint) => hint.scope === 'public') ? 'public' : 'private',
  }
}
