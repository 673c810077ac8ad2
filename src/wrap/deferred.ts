import { isResourceError, notFound, unavailable } from '../core/errors.ts'
import { untilAborted } from '../core/kit/abort.ts'
import type { Log } from '../core/log.ts'
import { findListed } from '../core/mount.ts'
import type { Context, Entry, ListQuery, PromptCompletion, Provider } from '../core/provider.ts'

export interface DeferredAbilities {
  readonly watch: boolean
  /** Whether the provider has `prompts`. `separate`: they change independently of entries, and the provider completes their arguments. */
  readonly prompts: boolean | 'separate'
  readonly tools?: boolean
  readonly sees: boolean
  readonly parts?: boolean
}

export interface DeferredOptions {
  readonly abilities: DeferredAbilities
  readonly log?: Log
  /** Pause after a failure to open, in milliseconds. It doubles with each failure (backoff). Default 1,000. */
  readonly pauseMs?: number
  /** The longest of these pauses, in milliseconds. Default 60,000. */
  readonly longestPauseMs?: number
  /** Returns the current time of a monotonic clock, in milliseconds. Default `performance.now`. */
  readonly now?: () => number
}

/** `failed`: the provider could not be opened, and a use after a pause tries again. */
export type OpeningState = 'closed' | 'opening' | 'open' | 'failed'

export interface DeferredProvider<P extends Provider = Provider> extends Provider {
  openingState(): OpeningState
  /**
   * Opens the provider, unless it is open.
   *
   * @throws ResourceError `unavailable` if it cannot be opened, or if the last attempt failed a short time ago.
   */
  open(): Promise<P>
}

/**
 * A provider that is opened at its first use, once for all waiting callers. If it cannot be opened, the call is `unavailable`, and a later
 * call tries again. A caller that aborts stops waiting; the opening continues.
 */
export function deferred<P extends Provider>(open: () => Promise<P>, options: DeferredOptions): DeferredProvider<P> {
  const { abilities, log = () => {}, now = () => performance.now() } = options
  const { pauseMs: firstPauseMs = 1000, longestPauseMs = 60_000 } = options
  let opened: P | undefined
  let opening: Promise<P> | undefined
  let failure: { readonly reason: string; readonly until: number; readonly pauseMs: number } | undefined
  let closed = false

  const begin = async (): Promise<P> => {
    try {
      const provider = await open()
      if (failure !== undefined) log('info', 'the mount is open now')
      failure = undefined
      opened = provider
      return provider
    } catch (error) {
      const reason = isResourceError(error) ? error.message : 'internal error'
      const pauseMs = Math.min(longestPauseMs, failure === undefined ? firstPauseMs : failure.pauseMs * 2)
      // Attempts that fail for the same reason in a row are logged once.
      if (failure?.reason !== reason) log('warn', 'the mount cannot be opened; it is tried again', { reason: error })
      failure = { reason, until: now() + pauseMs, pauseMs }
      opening = undefined
      throw error
    }
  }
  const attempt = async (): Promise<P> => {
    if (opening === undefined) {
      if (closed) throw unavailable('The source is closed.')
      const waitMs = failure === undefined ? 0 : failure.until - now()
      if (waitMs > 0) throw unavailable('The source cannot be opened.', { retryAfter: Math.ceil(waitMs / 1000) })
      opening = begin()
    }
    return opening.catch((error: unknown) => {
      throw unavailable('The source cannot be opened.', {}, error)
    })
  }
  const whenOpen = async (signal: AbortSignal): Promise<P> => opened ?? untilAborted(attempt(), signal)
  const listOnceOpen = async function* (query: ListQuery, context: Context): AsyncGenerator<Entry> {
    yield* (await whenOpen(context.signal)).list(query, context)
  }

  return {
    open: attempt,
    openingState: () => {
      if (opened !== undefined) return 'open'
      if (failure !== undefined) return 'failed'
      return opening === undefined ? 'closed' : 'opening'
    },
    list: (query, context) => opened?.list(query, context) ?? listOnceOpen(query, context),
    read: async (request, context) => (opened ?? (await whenOpen(context.signal))).read(request, context),
    stat: async (path, context) => {
      const provider = opened ?? (await whenOpen(context.signal))
      const entry = await (provider.stat?.(path, context) ?? findListed(provider, path, context))
      if (entry === undefined) throw notFound('the source lists nothing at this path')
      return entry
    },
    start: () =>
      void attempt().then(
        (provider) => provider.start?.(),
        () => {},
      ),
    templates: async (context) => (await (await whenOpen(context.signal)).templates?.(context)) ?? [],
    complete: async (request, context) => (await whenOpen(context.signal)).complete?.(request, context),
    ...(abilities.watch
      ? {
          watch: async (signal: AbortSignal) => (await whenOpen(signal)).watch?.(signal) ?? neverChanging(signal),
          catchUp: async (signal: AbortSignal) => (await opened?.catchUp?.(signal)) ?? false,
          isListed: (path: string) => opened?.isListed?.(path) ?? true,
          listsChanges: (isRestricted: boolean) => opened?.listsChanges?.(isRestricted) ?? false,
          lookedAt: () => opened?.lookedAt?.(),
          follow: async (path: string) => (await attempt()).follow?.(path) ?? true,
          unfollow: (path: string) => opened?.unfollow?.(path),
        }
      : {}),
    ...(abilities.prompts !== false
      ? {
          prompts: {
            ...(abilities.prompts === 'separate'
              ? {
                  separate: true,
                  complete: async (request: PromptCompletion, context: Context) =>
                    (await (await whenOpen(context.signal)).prompts?.complete?.(request, context)) ?? { values: [] },
                }
              : {}),
            list: async (context: Context) => (await (await whenOpen(context.signal)).prompts?.list(context)) ?? [],
            get: async (request, context) => {
              const { prompts } = await whenOpen(context.signal)
              if (prompts === undefined) throw notFound('the source has no prompts')
              return prompts.get(request, context)
            },
          },
        }
      : {}),
    ...(abilities.tools === true
      ? {
          tools: {
            list: async (context: Context) => (await (await whenOpen(context.signal)).tools?.list(context)) ?? [],
            call: async (request, context) => {
              const { tools } = await whenOpen(context.signal)
              if (tools === undefined) throw notFound('the source has no tools')
              return tools.call(request, context)
            },
          },
        }
      : {}),
    ...(abilities.sees ? { sees: (principal, path) => opened?.sees?.(principal, path) ?? true } : {}),
    ...(abilities.parts && {
      parts: async (path: string, context: Context) => (await whenOpen(context.signal)).parts?.(path, context),
    }),
    degraded: () => (failure === undefined ? opened?.degraded?.() : 'unavailable'),
    close: async () => {
      closed = true
      const provider = await opening?.catch(() => undefined)
      await provider?.close?.()
    },
  }
}

async function* neverChanging(signal: AbortSignal): AsyncGenerator<never> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
