import type { Change, Provider } from '../../src/core/provider.ts'
import type { View } from '../../src/core/view.ts'
import { pause } from '../support/live.ts'
import { type Fault, principals } from './sources.ts'
import { rules } from './world.ts'

/**
 * Stand-ins that break one guarantee each, put in where the real parts meet: between a mount and its source, and between a
 * server and its view. The checks must notice every one.
 */

/** A source that says that it watches, and begins to a while later. */
export const watchesLate: Fault = {
  provider: (provider) => ({
    ...provider,
    watch: async (signal) => {
      const begin = async function* (): AsyncGenerator<Change> {
        await pause(100)
        yield* (await provider.watch?.(signal)) ?? []
      }
      return begin()
    },
  }),
}

/** A view that says that it listens before its sources do. */
export const acknowledgesEarly: Fault = {
  view: (view, principal) =>
    withSubscription(view, (subscription) => ({
      ...subscription,
      add: async (uris, options) => {
        void subscription.add(uris, options)
        return uris.filter((uri) => rules.maySee(principal.id, uri))
      },
    })),
}

/** A view that never answers one of those who want to listen. */
export const neverAcknowledges: Fault = {
  view: (view) =>
    withSubscription(view, (subscription) => ({
      ...subscription,
      add: (uris, options) =>
        uris.some((uri) => uri.endsWith('/own/3')) ? new Promise(() => {}) : subscription.add(uris, options),
    })),
}

/** A source that loses its watch, and begins again without a word. */
export const returnsSilently: Fault = {
  provider: (provider) => ({
    ...provider,
    watch: async (signal) => {
      const first = await provider.watch?.(signal)
      const forever = async function* (): AsyncGenerator<Change> {
        yield* first ?? []
        while (!signal.aborted) {
          const again = await provider.watch?.(signal).catch(() => undefined)
          yield* again ?? []
          await pause(1)
        }
      }
      return forever()
    },
  }),
}

/**
 * A cache of what was read.
 *
 * @param forget When a change comes, either calls `drop` before `pass`, as it should be, or not.
 */
function cached(provider: Provider, forget: (drop: () => void) => void): Provider {
  const kept = new Map<string, ReturnType<Provider['read']>>()
  let watching = false
  return {
    ...provider,
    read: async (request, context) => {
      const { path } = request
      const known = kept.get(path)
      if (known !== undefined) return known
      const answer = provider.read(request, context)
      // Only what is watched may be kept.
      if (watching) kept.set(path, answer)
      answer.catch(() => kept.delete(path))
      return answer
    },
    watch: async (signal) => {
      const changes = await provider.watch?.(signal)
      kept.clear()
      watching = true
      const passed = async function* (): AsyncGenerator<Change> {
        try {
          for await (const change of changes ?? []) {
            forget(() => (change.path === undefined ? kept.clear() : kept.delete(change.path)))
            yield change
          }
        } finally {
          watching = false
          kept.clear()
        }
      }
      return passed()
    },
  }
}

/** No fault: a cache that forgets what has changed before it tells. */
export const caches: Fault = { provider: (provider) => cached(provider, (drop) => drop()) }

/** A cache that forgets nothing. */
export const cachesForEver: Fault = { provider: (provider) => cached(provider, () => {}) }

/** A cache that tells first, and forgets afterwards. */
export const forgetsLate: Fault = {
  provider: (provider) => cached(provider, (drop) => void setTimeout(drop, 600)),
}

/** A view that joins what comes too often by leaving it out. */
export const dropsTheLast: Fault = {
  view: (view) => {
    const told = new Map<string, number>()
    const subscribe: View['subscribe'] = (listener) => {
      const now = performance.now()
      const subscription = view.subscribe?.((change) => {
        const uris = change.uris.filter((uri) => uri.endsWith('bell') || now - (told.get(uri) ?? 0) > 1000)
        for (const uri of uris) told.set(uri, now)
        listener({ ...change, uris })
      })
      if (subscription === undefined) throw new Error('the view cannot tell of changes')
      return subscription
    }
    return { ...view, subscribe }
  },
}

/** A view that is told what somebody else may see. */
export const tellsOthers: Fault = {
  view: (view, _, catalog) => ({ ...view, subscribe: catalog.view(principals[2] ?? principals[0]!).subscribe! }),
}

/** A view that leaves a resource out of the list. */
export const listsTooLittle: Fault = {
  view: (view) => ({
    ...view,
    list: async (query, options) => {
      const page = await view.list(query, options)
      return { ...page, items: page.items.filter(({ uri }) => !uri.endsWith('/hot/7.txt')) }
    },
  }),
}

/** A source whose reads meet a write halfway. */
export const readsHalf: Fault = {
  provider: (provider) => ({
    ...provider,
    read: async (request, context) => {
      const [content] = await provider.read(request, context)
      const text = content !== undefined && 'text' in content ? content.text : ''
      return [{ text: text.length % 5 === 0 ? text.slice(0, -3) : text }]
    },
  }),
}

type Subscription = ReturnType<NonNullable<View['subscribe']>>

function withSubscription(view: View, wrap: (subscription: Subscription) => Subscription): View {
  const subscribe: View['subscribe'] = (listener) => {
    const subscription = view.subscribe?.(listener)
    if (subscription === undefined) throw new Error('the view cannot tell of changes')
    return wrap(subscription)
  }
  return { ...view, subscribe }
}
