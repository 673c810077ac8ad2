import type { SubscriptionFilter } from '@modelcontextprotocol/client'
import { isResourceError } from '../core/errors.ts'
import type { Connection } from './connection.ts'
import { isUnknownMethodError } from './failures.ts'
import type { ServerStream } from './http.ts'
import { type ChangeSet, type ChangeStream, createChangeStreamManager, emptyChangeSet, uriKey } from './listeners.ts'

export type NotificationFeed = ReturnType<typeof createNotificationFeed>

type FeedTerms = Omit<NotificationFeed, 'isLost'>

/** @param onLost Called once, when the feed is lost. */
export function createNotificationFeed(connection: Connection, onLost: () => void) {
  const { tells } = connection
  let isClosed = false
  let isLost = false
  const lose = () => {
    if (isClosed || isLost) return
    isLost = true
    onLost()
  }
  void connection.ended.then(lose)
  const feed = connection.listen === undefined ? requesting(connection, lose) : listening(connection, lose)
  return {
    /**
     * Replaces the wanted set. Notifications for members of both the old and the new set are not missed. Resolves to the set that the
     * server agreed to.
     *
     * @throws ResourceError when a request fails; then the old set stays in force.
     */
    ask: ({ uris, list, prompts, tools }: ChangeSet): Promise<ChangeSet> =>
      feed.ask({
        uris: tells.updated ? uris : emptyChangeSet.uris,
        list: list && tells.listed,
        prompts: prompts && tells.prompts,
        tools: tools && tells.tools,
      }),
    /** Whether the server has stopped notifying although this client did not ask it to. */
    get isLost(): boolean {
      return isLost
    },
    close: () => {
      isClosed = true
      feed.close()
    },
  }
}

/** The feed from revision 2026-07-28 on: one stream carries all notifications. */
function listening({ listen }: Connection, lose: () => void): FeedTerms {
  const open = async ({ uris, list, prompts, tools }: ChangeSet): Promise<ChangeStream | undefined> => {
    const filter: SubscriptionFilter = {
      ...(uris.size > 0 ? { resourceSubscriptions: [...uris] } : {}),
      ...(list ? { resourcesListChanged: true } : {}),
      ...(prompts ? { promptsListChanged: true } : {}),
      ...(tools ? { toolsListChanged: true } : {}),
    }
    const subscription = await listen?.(filter).catch((error: unknown) => {
      if (!isUnknownMethodError(error)) throw error
    })
    if (subscription === undefined) return undefined
    const { honoredFilter, closed, close } = subscription
    const honoured = new Set(honoredFilter.resourceSubscriptions?.map(uriKey))
    return {
      told: {
        uris: new Set([...uris].filter((uri) => honoured.has(uriKey(uri)))),
        list: honoredFilter.resourcesListChanged === true,
        prompts: honoredFilter.promptsListChanged === true,
        tools: honoredFilter.toolsListChanged === true,
      },
      asked: uris.size,
      ended: closed,
      close: () => void close(),
    }
  }
  return createChangeStreamManager(open, lose)
}

const maxInFlight = 8

/** The feed before revision 2026-07-28: one request for each URI, and over Streamable HTTP a stream for the notifications. */
function requesting(connection: Connection, lose: () => void): FeedTerms {
  const { request, openStanding } = connection
  const requestedUris = new Set<string>()
  let standing: ServerStream | undefined

  /** Opens the stream for notifications if the transport needs one. Resolves to false when the server has none. */
  const hears = async (): Promise<boolean> => {
    if (openStanding === undefined || standing !== undefined) return true
    const stream = await openStanding()
    standing = stream
    void stream?.ended.then(() => void (standing === stream && lose()))
    return stream !== undefined
  }
  const subscribe = async (uri: string): Promise<boolean> => {
    try {
      await request('resources/subscribe', { uri }, undefined)
      return true
    } catch (error) {
      // A failure that concerns this URI alone counts as a refusal.
      const isFailure =
        isResourceError(error, 'unavailable') ||
        (isResourceError(error, 'invalid') && error.detail.reason === 'too-many')
      if (isFailure) throw error
      return false
    }
  }
  // Wait for the answers: a late request would undo a newer subscription to the same URI.
  const unsubscribe = (uris: readonly string[]): Promise<void> =>
    eachOf(uris, async (uri) => {
      requestedUris.delete(uri)
      await request('resources/unsubscribe', { uri }, undefined).catch(() => {})
    })
  const silence = () => {
    const last = standing
    standing = undefined
    last?.close()
  }

  return {
    ask: async ({ uris, list, prompts, tools }) => {
      const hasLists = list || prompts || tools
      if ((uris.size > 0 || hasLists) && !(await hears())) return emptyChangeSet
      const fresh = [...uris].filter((uri) => !requestedUris.has(uri))
      const acceptedUris: string[] = []
      try {
        await eachOf(fresh, async (uri) => void ((await subscribe(uri)) && acceptedUris.push(uri)))
      } catch (error) {
        await unsubscribe(acceptedUris)
        throw error
      }
      for (const uri of acceptedUris) requestedUris.add(uri)
      await unsubscribe([...requestedUris].filter((uri) => !uris.has(uri)))
      if (requestedUris.size === 0 && !hasLists) silence()
      return { uris: new Set(requestedUris), list, prompts, tools }
    },
    // No request ends the subscriptions: the server drops them when the connection ends.
    close: silence,
  }
}

/** Calls a function for each item, a few at a time. After a failure no call begins; when those in flight have ended, the failure is thrown. */
async function eachOf<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values()
  const failures: unknown[] = []
  const worker = async () => {
    for (const item of rest) {
      if (failures.length > 0) return
      await act(item).catch((error: unknown) => failures.push(error))
    }
  }
  await Promise.all(Array.from({ length: Math.min(maxInFlight, items.length) }, worker))
  if (failures.length > 0) throw failures[0]
}
