import { untilAborted } from './abort.ts'
import type { Catalog } from './catalog.ts'
import { invalid, ResourceError } from './errors.ts'
import type { Narrowing } from './narrowing.ts'
import type { Principal } from './provider.ts'
import type { CallOptions, ChangeListener, PromptView, Subscription, View } from './view.ts'

/** Something that is opened once, when it is first needed or when {@link Opening.start} is called. */
export interface Opening<T> {
  /** Opens it, unless that has begun already. Rejects with the error of opening it. */
  start(): Promise<T>
  /**
   * Waits until it is open, and opens it where nobody has yet. An abort ends the wait, not the opening.
   *
   * @throws ResourceError `unavailable` when it could not be opened. The error itself goes to whoever called `start`.
   */
  whenOpen(signal?: AbortSignal): Promise<T>
  /** What was opened. `undefined`: it is not open. */
  readonly opened: T | undefined
  /** Whether opening has begun. */
  readonly isStarted: boolean
}

export function createOpening<T>(open: () => Promise<T>): Opening<T> {
  let opened: T | undefined
  let opening: Promise<T> | undefined
  const start = (): Promise<T> => {
    opening ??= open().then((value) => {
      opened = value
      return value
    })
    // Every caller of `start` gets the rejection; without a caller left it is not an unhandled one.
    opening.catch(() => {})
    return opening
  }
  return {
    start,
    whenOpen: async (signal) =>
      untilAborted(
        start().catch((error: unknown) => {
          throw new ResourceError('unavailable', 'the mounts could not be opened', {}, { cause: error })
        }),
        signal,
      ),
    get opened() {
      return opened
    },
    get isStarted() {
      return opening !== undefined
    },
  }
}

/** The abilities of a catalog that can be told before it is open. */
export interface Abilities {
  /** Whether a mount can tell of changes. */
  readonly live: boolean
  /** Whether a mount has prompts, and whether one of those can tell of changes. `undefined`: none has prompts. */
  readonly prompts: { readonly live: boolean } | undefined
}

/** Where views come from: a catalog, or one that is still being opened. */
export type Views = Pick<Catalog, 'view' | 'narrowed'>

/** The views of a catalog that is still being opened. They say at once what they can do; every method waits for the catalog. */
export function createOpeningViews(opening: Opening<Catalog>, abilities: Abilities): Views {
  return {
    view: (principal) => createOpeningView(opening, abilities, (catalog) => catalog.view(principal)),
    narrowed: (narrowing) => {
      const viewsOf = narrowOnce(narrowing)
      return (principal) => createOpeningView(opening, abilities, (catalog) => viewsOf(catalog)(principal))
    },
  }
}

/** A narrowed catalog compiles its mounts: once is enough for all principals. */
function narrowOnce(narrowing: Narrowing): (catalog: Catalog) => (principal: Principal) => View {
  let views: ((principal: Principal) => View) | undefined
  return (catalog) => {
    views ??= catalog.narrowed(narrowing)
    return views
  }
}

function createOpeningView(opening: Opening<Catalog>, abilities: Abilities, viewOf: (catalog: Catalog) => View): View {
  let made: View | undefined
  const whole = async (options: CallOptions | undefined): Promise<View> => {
    const { opened } = opening
    made ??= viewOf(opened ?? (await opening.whenOpen(options?.signal)))
    return made
  }
  const { live, prompts } = abilities
  return {
    mounts: async (options) => (await whole(options)).mounts(options),
    list: async (query, options) => (await whole(options)).list(query, options),
    templates: async (query, options) => (await whole(options)).templates(query, options),
    read: async (uri, options) => (await whole(options)).read(uri, options),
    directory: async (query, options) => (await whole(options)).directory(query, options),
    complete: async (request, options) => (await whole(options)).complete(request, options),
    ...(prompts === undefined ? {} : { prompts: openingPrompts(whole, prompts.live) }),
    live,
    ...(live ? { subscribe: (listener: ChangeListener) => openingSubscription(opening, whole, listener) } : {}),
  }
}

function openingPrompts(whole: (options: CallOptions | undefined) => Promise<View>, live: boolean): PromptView {
  const prompts = async (options: CallOptions | undefined): Promise<PromptView> => {
    const view = await whole(options)
    if (view.prompts === undefined) throw invalid('There is no such prompt.', 'unknown-prompt')
    return view.prompts
  }
  return {
    live,
    list: async (query, options) => (await prompts(options)).list(query, options),
    get: async (request, options) => (await prompts(options)).get(request, options),
    complete: async (request, options) => (await prompts(options)).complete(request, options),
  }
}

/** A subscription that begins once the catalog is open. It tells of no change before: nothing can be added to it before. */
function openingSubscription(
  opening: Opening<Catalog>,
  whole: (options: CallOptions | undefined) => Promise<View>,
  listener: ChangeListener,
): Subscription {
  let closed = false
  let begun: Promise<Subscription | undefined> | undefined
  let inner: Subscription | undefined
  const begin = async (): Promise<Subscription | undefined> => {
    const view = await whole(undefined)
    if (!closed) inner = view.subscribe?.(listener)
    return inner
  }
  const subscription = async (options: CallOptions | undefined): Promise<Subscription | undefined> => {
    if (opening.opened === undefined) await opening.whenOpen(options?.signal)
    begun ??= begin()
    return begun
  }
  return {
    get uris() {
      return inner?.uris ?? []
    },
    add: async (uris, options) => (await subscription(options))?.add(uris, options) ?? [],
    addList: async (options) => (await subscription(options))?.addList(options) ?? false,
    addPrompts: async (options) => (await subscription(options))?.addPrompts?.(options) ?? false,
    remove: (uri) => inner?.remove(uri),
    close: () => {
      closed = true
      inner?.close()
    },
  }
}
