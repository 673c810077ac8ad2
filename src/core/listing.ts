import { cleanTexts } from './entry.ts'
import { isResourceError, type ResourceError } from './errors.ts'
import { eachGroup } from './kit/groups.ts'
import type { Mounted } from './mount.ts'
import { type CatalogState, createPageBuilder, type Rank, selectEntries } from './paging.ts'
import { parentOf } from './path.ts'
import type { Context, Description, Principal } from './provider.ts'
import type { CacheHint, Page, Resource, ResourceTemplate } from './view.ts'

/** Position of a listing: strictly after `key` (a path, or the number of a template) in the mount at `address`. */
interface ListPosition {
  readonly page: number
  readonly address: string
  readonly key: string
}

/** Returns the scope that binds a cursor to one listing of one principal. A change of the principal's roles invalidates the cursor. */
export function cursorScope(listing: string, principal: Principal): readonly string[] {
  return [listing, principal.id, ...[...principal.roles].sort()]
}

type Sized = Description &
  Partial<Pick<Resource, 'uri' | 'name' | 'size' | 'modified' | 'version'>> & {
    readonly uriTemplate?: string
  }

/** Length of the mark of untrusted texts in `_meta`, in bytes. */
const untrustedBytes = 72

/** Returns an upper bound for the length of the JSON of a resource or a template on a page, in bytes. */
export function itemSizeBound(item: Sized): number {
  const { uri = item.uriTemplate ?? '', name = '', title, description, mimeType } = item
  const uriBytes = jsonBytes(uri)
  // If the URI is plain ASCII and ends in the name, the name is plain too, and need not be measured.
  const isPlain = uriBytes === uri.length + 2 && uri.endsWith(name)
  let bytes = 32 + uriBytes + (isPlain ? name.length + 2 : jsonBytes(name))
  if (title !== undefined) bytes += 12 + jsonBytes(title)
  if (description !== undefined) bytes += 18 + jsonBytes(description)
  if (mimeType !== undefined) bytes += 14 + jsonBytes(mimeType)
  if (item.size !== undefined) bytes += 26
  if (item.version !== undefined) bytes += 48 + jsonBytes(item.version)
  if (item.modified !== undefined) bytes += 62
  if (item.priority !== undefined) bytes += 50
  if (item.audience !== undefined) bytes += 50
  for (const more of [item.icons, item.meta]) if (more !== undefined) bytes += 24 + jsonBytes(more)
  // The answer also lists which of these texts are untrusted.
  if (item.title !== undefined || item.description !== undefined) bytes += untrustedBytes
  return bytes
}

function jsonBytes(value: unknown): number {
  // Most names are plain: measure them without a copy.
  if (typeof value === 'string' && /^[ !#-[\]-~]*$/.test(value)) return value.length + 2
  // A control character is shown as an escape, which takes up to seven bytes of JSON.
  return Math.ceil(Buffer.byteLength(JSON.stringify(value) ?? '') * (typeof value === 'string' ? 1.2 : 1))
}

const maxCompared = 20_000

interface ListBounds {
  /** Maximum number of resources on all pages together: the most important ones, best first. Default no limit. */
  readonly most?: number | undefined
  /** Maximum number of pages. With it, derived mounts come last. Default no limit. */
  readonly pages?: number | undefined
}

export function createListing(state: CatalogState, { most, pages = Number.POSITIVE_INFINITY }: ListBounds = {}) {
  const { seal, paging } = state
  const ownFirst = Number.isFinite(pages)
  const mounts = ownFirst ? state.mounts.toSorted((a, b) => Number(a.derived) - Number(b.derived)) : state.mounts
  const listKind = most !== undefined ? 'selection' : ownFirst ? 'list, own first' : 'list'

  const list = async (cursor: string | undefined, context: Context): Promise<Page<Resource>> => {
    if (most !== undefined) return listSelection({ state, mounts, most }, cursor, context)
    const scope = cursorScope(listKind, context.principal)
    const position = openCursor(seal, cursor, scope)
    const { page } = position ?? { page: 0 }
    const builder = createPageBuilder<Resource>(paging, page)
    const failedMounts: Mounted[] = []
    let failure: ResourceError | undefined
    // The next page usually begins after the last entry on this one (`lastShown`). When too many entries were read, it
    // begins after the last one read (`lastLook`), which the principal may not be allowed to see: so the cursor is
    // encrypted.
    const lastShown = { address: '', path: '' }
    const lastLook = { address: '', path: '' }
    const end = (after: typeof lastShown) =>
      page + 1 >= pages ? finish() : finish(seal.seal(scope, JSON.stringify([page + 1, after.address, after.path])))
    const finish = (nextCursor?: string): Page<Resource> => ({
      items: builder.items,
      ...(nextCursor === undefined ? {} : { nextCursor }),
      cache: sharedCache(mounts, context.principal),
      ...unavailableMounts(failedMounts, context.principal),
    })

    const starts = mountsFrom(mounts, position, context)
    for (const { mount, after } of starts) {
      const address = mount.address.text
      const sees = seesIn(mount, context.principal)
      try {
        for await (const entries of eachGroup(mount.provider.list(after === undefined ? {} : { after }, context))) {
          context.signal.throwIfAborted()
          for (const entry of entries) {
            if (!builder.look()) return end(lastLook)
            lastLook.path = entry.path
            lastLook.address = address
            if (!sees(entry.path)) continue
            const resource = mount.resourceOf(entry)
            if (!builder.add(resource, itemSizeBound(resource))) return end(lastShown)
            lastShown.path = entry.path
            lastShown.address = address
          }
        }
      } catch (error) {
        // A source that is down must not take the others with it; the page names the missing mount.
        if (!isResourceError(error, 'unavailable')) throw error
        logMissing(state, mount, error)
        failedMounts.push(mount)
        failure ??= error
      }
    }
    if (failure !== undefined && failedMounts.length === starts.length) throw failure
    return finish()
  }

  const listSoon = async (cursor: string | undefined, context: Context): Promise<Page<Resource>> => {
    const hurriedContext = withListDeadline(mounts, context)
    try {
      return await list(cursor, hurriedContext)
    } catch (error) {
      const isEarly = isResourceError(error, 'unavailable') && error.detail.retryAfter !== undefined
      if (hurriedContext === context || !isEarly) throw error
      return list(cursor, context)
    }
  }

  return {
    list: listSoon,
    templates: (cursor: string | undefined, context: Context) =>
      listTemplates(state, mounts, cursor, withListDeadline(mounts, context)),
    mounts: async (callerContext: Context): Promise<readonly Resource[]> => {
      const context = withListDeadline(mounts, callerContext)
      const rootOf = async (mount: Mounted) =>
        (await whenAvailable(mount, state, () => isVisible(mount, state, context))) === true ? [mount.root] : []
      return (await Promise.all(mounts.map(rootOf))).flat()
    },
  }
}

function openCursor(
  seal: CatalogState['seal'],
  cursor: string | undefined,
  scope: readonly string[],
): ListPosition | undefined {
  if (cursor === undefined) return undefined
  const sealed = JSON.parse(seal.open(scope, cursor)) as [number, string?, string?]
  const [page, address = '', key = ''] = sealed
  return { page, address, key }
}

/** Returns the mounts from a position on, the first with the key to resume after. A mount that was unmounted since is skipped. */
function mountsFrom(
  mounts: readonly Mounted[],
  position: ListPosition | undefined,
  { principal }: Context,
): readonly { mount: Mounted; after?: string }[] {
  // Do not ask the hidden mounts at all: the time would reveal that they exist.
  const visibleMounts = mounts.filter((mount) => !mount.isHidden(principal))
  if (position === undefined) return visibleMounts.map((mount) => ({ mount }))
  const { address, key } = position
  // When the mount of the position no longer exists, its address alone gives the position.
  const at = visibleMounts.findIndex((mount) => mount.address.text === address)
  if (at !== -1) return visibleMounts.slice(at).map((mount, index) => (index === 0 ? { mount, after: key } : { mount }))
  const start = Buffer.from(address)
  return visibleMounts
    .filter((mount) => Buffer.compare(Buffer.from(mount.address.text), start) > 0)
    .map((mount) => ({ mount }))
}

async function listSelection(
  { state, mounts, most }: { readonly state: CatalogState; readonly mounts: readonly Mounted[]; readonly most: number },
  cursor: string | undefined,
  context: Context,
): Promise<Page<Resource>> {
  const { seal, paging } = state
  const scope = cursorScope('selection', context.principal)
  const [before, after] = (cursor === undefined ? [0] : JSON.parse(seal.open(scope, cursor))) as [number, Rank?]
  const failedMounts: Mounted[] = []
  let failure: unknown
  const visibleMounts = mounts.filter((mount) => !mount.isHidden(context.principal))
  const bounds = { visible: Math.max(maxCompared, most), scan: paging.scan }
  const best = await selectEntries(visibleMounts, most - before, after, bounds, context, (mount, error) => {
    if (!isResourceError(error, 'unavailable')) throw error
    logMissing(state, mount, error)
    failedMounts.push(mount)
    failure ??= error
  })
  if (failedMounts.length > 0 && failedMounts.length === visibleMounts.length) throw failure
  // Put all resources on one page, unless it would be too long: the next page has to select them again.
  const builder = createPageBuilder<Resource>({ ...paging, first: most, most }, 0)
  let last: Rank | undefined
  let isWhole = true
  for (const { rank, mount, entry } of best) {
    const resource = mount.resourceOf(entry)
    isWhole = builder.add(resource, itemSizeBound(resource))
    if (!isWhole) break
    last = rank
  }
  return {
    items: builder.items,
    ...(isWhole ? {} : { nextCursor: seal.seal(scope, JSON.stringify([before + builder.items.length, last])) }),
    cache: sharedCache(mounts, context.principal),
    ...unavailableMounts(failedMounts, context.principal),
  }
}

function logMissing({ log }: CatalogState, mount: Mounted, error: ResourceError): void {
  log('warn', 'a mount is left out of a listing: it is unavailable', {
    mount: mount.address.text,
    error: error.message,
  })
}

async function listTemplates(
  state: CatalogState,
  mounts: readonly Mounted[],
  cursor: string | undefined,
  context: Context,
): Promise<Page<ResourceTemplate>> {
  const { seal, paging } = state
  const scope = cursorScope('templates', context.principal)
  const position = openCursor(seal, cursor, scope)
  const page = position?.page ?? 0
  const builder = createPageBuilder<ResourceTemplate>(paging, page)
  let last: readonly [address: string, index: string] = ['', '']
  const templatesOf = async ({ mount, after }: { readonly mount: Mounted; readonly after?: string }) => {
    const ask = async () => ((await isVisible(mount, state, context)) ? mount.templates(context) : [])
    return { mount, after, all: await whenAvailable(mount, state, ask) }
  }
  const lists = await Promise.all(mountsFrom(mounts, position, context).map(templatesOf))
  const failedMounts = lists.filter(({ all }) => all === undefined).map(({ mount }) => mount)
  const shared = {
    cache: sharedCache(mounts, context.principal),
    ...unavailableMounts(failedMounts, context.principal),
  }
  for (const { mount, after, all = [] } of lists) {
    for (let index = after === undefined ? 0 : Number(after) + 1; index < all.length; index++) {
      const template = all[index]
      if (template === undefined) break
      const { template: _, free: __, ...facts } = template.declared
      const item = { uriTemplate: template.uriTemplate, ...cleanTexts(facts) }
      if (!builder.add(item, itemSizeBound(item)))
        return { items: builder.items, nextCursor: seal.seal(scope, JSON.stringify([page + 1, ...last])), ...shared }
      last = [mount.address.text, String(index)]
    }
  }
  return { items: builder.items, ...shared }
}

/** How long a list of several sources waits for those that have never answered, in milliseconds. */
const firstAnswerMs = 2000

/**
 * Sets the deadline `answerBy` for a list of several sources, so that one that has never answered does not hold up the
 * others for long.
 * @param servedMounts The mounts of the catalog. If the principal may see several, the deadline applies even if only
 * one is asked.
 */
export function withListDeadline(
  listedMounts: readonly Mounted[],
  context: Context,
  servedMounts = listedMounts,
): Context {
  const visible = (mounts: readonly Mounted[]) => mounts.filter((mount) => !mount.isHidden(context.principal))
  if (visible(servedMounts).length < 2) return context
  for (const mount of visible(listedMounts)) mount.provider.start?.()
  return { ...context, answerBy: performance.now() + firstAnswerMs }
}

export type Listing = ReturnType<typeof createListing>

/**
 * Returns a function that decides whether a principal may see a path of a mount. It is fast for paths in listing order: if all of a
 * directory may be seen, the rules are checked only once for the directory.
 */
function seesIn(mount: Mounted, principal: Principal): (path: string) => boolean {
  if (!mount.restricted) return () => true
  let directory: string | undefined
  let isOpen = false
  return (path) => {
    const parent = parentOf(path)
    if (parent !== directory) {
      directory = parent
      isOpen = mount.reach(principal, parent) === 'all'
    }
    return isOpen || mount.access(principal, path)
  }
}

/** Returns the addresses of the mounts that did not answer, without those that the principal may not see. */
export function unavailableMounts(
  failedMounts: readonly Mounted[],
  principal: Principal,
): Pick<Page<unknown>, 'unavailable'> {
  const unavailable = failedMounts.filter((mount) => mount.access(principal, '')).map(({ address }) => address.text)
  return unavailable.length === 0 ? {} : { unavailable }
}

/** Whether the principal may know that a mount exists: it may see the root, or one of the first entries in it (as many as a page may scan). */
export async function isVisible(mount: Mounted, state: CatalogState, context: Context): Promise<boolean> {
  const { principal } = context
  if (mount.isHidden(principal)) return false
  if (mount.access(principal, '') || mount.reach(principal, '') === 'all') return true
  let lookCount = 0
  for await (const entry of mount.provider.list({}, context)) {
    if (mount.access(principal, entry.path)) return true
    if (++lookCount >= state.paging.scan) break
  }
  return false
}

async function whenAvailable<T>(mount: Mounted, state: CatalogState, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask()
  } catch (error) {
    if (!isResourceError(error, 'unavailable')) throw error
    state.log('warn', 'a mount does not answer', { mount: mount.address.text, error: error.message })
    return undefined
  }
}

/** Returns one cache hint for answers with parts of several mounts: all pages of a list share one scope. */
function sharedCache(mounts: readonly Mounted[], principal: Principal): CacheHint {
  const times = mounts.filter((mount) => !mount.isHidden(principal)).map((mount) => mount.cache.ttlMs)
  // One mount that others may not see makes the whole answer depend on the caller.
  const isPublic = mounts.length > 0 && mounts.every((mount) => mount.cache.scope === 'public')
  return { ttlMs: times.length === 0 ? 0 : Math.min(...times), scope: isPublic ? 'public' : 'private' }
}
