import type { ListRestriction } from './access.ts'
import type { Catalog } from './catalog.ts'
import { invalid, ResourceError, unavailable } from './errors.ts'
import { untilAborted } from './kit/abort.ts'
import type { Principal } from './provider.ts'
import type { CallOptions, ChangeHistory, ChangeListener, PromptView, Subscription, View } from './view.ts'

export type PendingOpen<T> = ReturnType<typeof createPendingOpen<T>>

/** Creates a holder of a value, such as a catalog, that is opened once: when it is first needed, or when `start` is called. */
export function createPendingOpen<T>(open: () => Promise<T>) {
  let openValue: T | undefined
  let opening: Promise<T> | undefined
  const start = (): Promise<T> => {
    opening ??= open().then((value) => {
      openValue = value
      return value
    })
    // Callers of `start` get the rejection; without a caller it must not count as unhandled.
    opening.catch(() => {})
    return opening
  }
  return {
    start,
    /**
     * Waits until the value is open, and starts to open it if necessary. An abort ends the wait, not the opening.
     *
     * @throws ResourceError `unavailable` when it could not be opened. The original error goes to the caller of `start`.
     */
    whenOpen: async (signal?: AbortSignal): Promise<T> =>
      untilAborted(
        start().catch((error: unknown) => {
          throw unavailable('the mounts could not be opened', {}, error)
        }),
        signal,
      ),
    get opened() {
      return openValue
    },
    get isStarted() {
      return opening !== undefined
    },
  }
}

/** Abilities of a catalog that are known before it is open. */
export interface Abilities {
  /** Whether a mount can notify about changes. */
  readonly live: boolean
  /** Whether a mount with prompts can notify about changes. Undefined when no mount has prompts. */
  readonly prompts: { readonly live: boolean } | undefined
  /** Whether a mount has tools. Default false. */
  readonly tools?: boolean
}

/** The source of views: a catalog, or one that is still being opened. */
export type ViewFactory = Pick<Catalog, 'view' | 'narrowed'>

/** Creates the views of a catalog that is still being opened. Their abilities are known at once; their methods wait for the catalog. */
export function createOpeningViews(opening: PendingOpen<Catalog>, abilities: Abilities): ViewFactory {
  return {
    view: (principal) => createOpeningView(opening, abilities, (catalog) => catalog.view(principal)),
    narrowed: (narrowing) => {
      const viewsOf = narrowOnce(narrowing)
      return (principal) => createOpeningView(opening, abilities, (catalog) => viewsOf(catalog)(principal))
    },
  }
}

function narrowOnce(narrowing: ListRestriction): (catalog: Catalog) => (principal: Principal) => View {
  let views: ((principal: Principal) => View) | undefined
  return (catalog) => {
    views ??= catalog.narrowed(narrowing)
    return views
  }
}

function createOpeningView(
  opening: PendingOpen<Catalog>,
  abilities: Abilities,
  viewOf: (catalog: Catalog) => View,
): View {
  let view: View | undefined
  const whole = async (options: CallOptions | undefined): Promise<View> => {
    const { opened } = opening
    view ??= viewOf(opened ?? (await opening.whenOpen(options?.signal)))
    return view
  }
  const { live, prompts, tools = false } = abilities
  return {
    mounts: async (options) => (await whole(options)).mounts(options),
    list: async (query, options) => (await whole(options)).list(query, options),
    templates: async (query, options) => (await whole(options)).templates(query, options),
    read: async (uri, options) => (await whole(options)).read(uri, options),
    directory: async (query, options) => (await whole(options)).directory(query, options),
    complete: async (request, options) => (await whole(options)).complete(request, options),
    stat: async (uri, options) => ofCatalog((await whole(options)).stat)(uri, options),
    changed: async (query, options) => ofCatalog((await whole(options)).changed)(query, options),
    ...(prompts === undefined ? {} : { prompts: openingPrompts(whole, prompts.live) }),
    ...(tools
      ? {
          tools: {
            live,
            list: async (reserved, options) => (await whole(options)).tools?.list(reserved, options) ?? { tools: [] },
          },
        }
      : {}),
    live,
    ...(live
      ? {
          subscribe: (listener: ChangeListener) => openingSubscription(opening, whole, listener),
          history: openingHistory(whole),
        }
      : {}),
  }
}

function ofCatalog<Method>(method: Method | undefined): Method {
  if (method === undefined) throw new ResourceError('internal', 'The view was not made by a catalog.')
  return method
}

function openingPrompts(whole: (options: CallOptions | undefined) => Promise<View>, live: boolean): PromptView {
  const prompts = async (options: CallOptions | undefined): Promise<PromptView> => {
    const view = await whole(options)
    if (view.prompts === undefined) throw invalid('There is no such prompt.', 'unknown-name')
    return view.prompts
  }
  return {
    live,
    list: async (query, options) => (await prompts(options)).list(query, options),
    get: async (request, options) => (await prompts(options)).get(request, options),
    complete: async (request, options) => (await prompts(options)).complete(request, options),
  }
}

function openingHistory(whole: (options: CallOptions | undefined) => Promise<View>): ChangeHistory {
  return {
    open: async (filter, options) => {
      const { history } = await whole(options)
      if (history === undefined) throw invalid('No mount of this server reports changes.', 'refused')
      return history.open(filter, options)
    },
  }
}

/** Creates a subscription that begins when the catalog is open. Before that it has no notifications, since nothing can be added to it. */
function openingSubscription(
  opening: PendingOpen<Catalog>,
  whole: (options: CallOptions | undefined) => Promise<View>,
  listener: ChangeListener,
): Subscription {
  let closed = false
  let subscribing: Promise<Subscription | undefined> | undefined
  let inner: Subscription | undefined
  const begin = async (): Promise<Subscription | undefined> => {
    const view = await whole(undefined)
    if (!closed) inner = view.subscribe?.(listener)
    return inner
  }
  const subscription = async (options: CallOptions | undefined): Promise<Subscription | undefined> => {
    if (opening.opened === undefined) await opening.whenOpen(options?.signal)
    subscribing ??= begin()
    return subscribing
  }
  return {
    get uris() {
      return inner?.uris ?? []
    },
    add: async (uris, options) => (await subscription(options))?.add(uris, options) ?? [],
    addList: async (options) => (await subscription(options))?.addList(options) ?? false,
    addPrompts: async (options) => (await subscription(options))?.addPrompts?.(options) ?? false,
    addTools: async (options) => (await subscription(options))?.addTools?.(options) ?? false,
    remove: (uri) => inner?.remove(uri),
    close: () => {
      closed = true
      inner?.close()
    },
  }
}
