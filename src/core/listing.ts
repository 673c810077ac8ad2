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
  /** How many resources were listed before. */
  readonly before: number
}

type Key = readonly [address: string, path: string]

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

/** @param most How many resources are listed at most, on all pages together. */
export function createListing(state: CatalogState, most = Number.POSITIVE_INFINITY): Listing {
  const { mounts, seal, paging } = state

  const open = (cursor: string | undefined, scope: readonly string[]): Position | undefined => {
    if (cursor === undefined) return undefined
    const sealed = JSON.parse(seal.open(scope, cursor)) as [number, string?, string?, number?]
    const [page, address = '', key = '', before = 0] = sealed
    return { page, address, key, before }
  }

  /** The mounts from a position on, each with the key to resume after. One that was unmounted since is passed over. */
  const from = (
    position: Position | undefined,
    { principal }: Context,
  ): readonly { mount: Mounted; after?: string }[] => {
    // The others are not even asked: the time would tell that they are there.
    const known = mounts.filter((mount) => !mount.isHidden(principal))
    if (position === undefined) return known.map((mount) => ({ mount }))
    const start = Buffer.from(position.address)
    return known.flatMap((mount) => {
      const order = Buffer.compare(Buffer.from(mount.address.text), start)
      if (order < 0) return []
      return [order === 0 ? { mount, after: position.key } : { mount }]
    })
  }

  const list: Listing['list'] = async (cursor, context) => {
    const scope = cursorScope('list', context.principal)
    const position = open(cursor, scope)
    const { page, before } = position ?? { page: 0, before: 0 }
    const builder = createPageBuilder<Resource>(paging, page)
    const failed: { mount: Mounted; error: ResourceError }[] = []
    // What the next page resumes after: the last entry on this one. Where a page ends for having looked at too many, it is
    // the last of those, which may be one that must not be seen: nobody else's length shows in a cursor.
    let shown: Key = ['', '']
    let looked: Key = ['', '']
    const end = (after: Key) =>
      finish(seal.seal(scope, JSON.stringify([page + 1, ...after, before + builder.items.length])))
    const finish = (nextCursor?: string): Page<Resource> => ({
      items: builder.items,
      ...(nextCursor === undefined ? {} : { nextCursor }),
      cache: sharedCache(mounts, context.principal),
      ...(missing().length === 0 ? {} : { unavailable: missing() }),
    })
    // Of a mount of which nothing may be seen, not even this is told. Whether something may, only its source knows.
    const missing = () =>
      failed.filter(({ mount }) => mount.access(context.principal, '')).map(({ mount }) => mount.address.text)

    const asked = from(position, context)
    for (const { mount, after } of asked) {
      try {
        for await (const entry of mount.provider.list(after === undefined ? {} : { after }, context)) {
          context.signal.throwIfAborted()
          if (!builder.look()) return end(looked)
          looked = [mount.address.text, entry.path]
          if (!mount.access(context.principal, entry.path)) continue
          if (before + builder.items.length >= most) return finish()
          const resource = mount.resourceOf(entry)
          if (!builder.add(resource, sizeOf(resource))) return end(shown)
          shown = looked
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
    if (first !== undefined && failed.length === asked.length) throw first.error
    return finish()
  }

  const templates: Listing['templates'] = async (cursor, context) => {
    const scope = cursorScope('templates', context.principal)
    const position = open(cursor, scope)
    const page = position?.page ?? 0
    const builder = createPageBuilder<ResourceTemplate>(paging, page)
    const cache = sharedCache(mounts, context.principal)
    let last: readonly [address: string, index: string] = ['', '']
    for (const { mount, after } of from(position, context)) {
      const all = await whenAvailable(mount, state, async () =>
        (await isVisible(mount, state, context)) ? mount.templates(context) : [],
      )
      for (let index = after === undefined ? 0 : Number(after) + 1; index < all.length; index++) {
        const template = all[index]
        if (template === undefined) break
        const { template: _, free: __, ...facts } = template.declared
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
  const { principal } = context
  if (mount.isHidden(principal)) return false
  if (mount.access(principal, '') || mount.reach(principal, '') === 'all') return true
  let looked = 0
  for await (const entry of mount.provider.list({}, context)) {
    if (mount.access(principal, entry.path)) return true
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
function sharedCache(mounts: readonly Mounted[], principal: Principal): CacheHint {
  const times = mounts.filter((mount) => !mount.isHidden(principal)).map((mount) => mount.cache.ttlMs)
  // One mount that others may not see makes the whole depend on who asks.
  const isPublic = mounts.length > 0 && mounts.every((mount) => mount.cache.scope === 'public')
  return { ttlMs: times.length === 0 ? 0 : Math.min(...times), scope: isPublic ? 'public' : 'private' }
}
