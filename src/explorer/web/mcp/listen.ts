import type { Listeners, Told } from '../../../client/listeners.ts'
import type { Wire } from '../../../client/wire.ts'
import { ResourceError } from '../../../core/errors.ts'
import { objectOf } from '../../../core/kit/object.ts'
import { type Endpoint, stream } from './request.ts'

/** One `subscriptions/listen` (2026-07-28) that the server has acknowledged. */
export interface Listening {
  /** The requested subscription, of which the server may acknowledge less. */
  readonly asked: Told
  readonly told: Told
  /** Resolves when it ends, for any reason. */
  readonly ended: Promise<void>
  close(): void
}

/** The server sends a heartbeat every 15 seconds. A stream without one for this long, in milliseconds, is dead. */
const silence = 50_000

/**
 * Opens a stream of changes, and resolves when the server has acknowledged it.
 *
 * @throws ResourceError if the stream is refused, or ends before that.
 */
export function listen(endpoint: Endpoint, asked: Told, { tell }: Pick<Listeners, 'tell'>): Promise<Listening> {
  const controller = new AbortController()
  const { signal } = controller
  let timer: ReturnType<typeof setTimeout> | undefined
  const onSign = () => {
    clearTimeout(timer)
    timer = setTimeout(() => controller.abort(), silence)
  }
  const notifications = {
    ...(asked.uris.size > 0 ? { resourceSubscriptions: [...asked.uris] } : {}),
    ...(asked.list ? { resourcesListChanged: true } : {}),
    ...(asked.prompts ? { promptsListChanged: true } : {}),
  }

  return new Promise((acknowledge, refuse) => {
    const follow = async (end: () => void, ended: Promise<void>) => {
      onSign()
      try {
        for await (const message of stream(endpoint, 'subscriptions/listen', { notifications }, signal, onSign)) {
          // The answer to the request itself: the server is stopping.
          if ('result' in message || 'error' in message) break
          const params = objectOf(message.params)
          if (message.method === 'notifications/subscriptions/acknowledged') {
            const told = agreedOf(objectOf(params.notifications))
            acknowledge({ asked, told, ended, close: () => controller.abort() })
          } else if (message.method === 'notifications/resources/updated' && typeof params.uri === 'string')
            tell({ uris: [params.uri], listed: false })
          else if (message.method === 'notifications/resources/list_changed') tell({ uris: [], listed: true })
          else if (message.method === 'notifications/prompts/list_changed')
            tell({ uris: [], listed: false, prompts: true })
        }
        refuse(new ResourceError('unavailable', 'The server does not tell of changes just now.'))
      } catch (error) {
        refuse(error)
      } finally {
        clearTimeout(timer)
        controller.abort()
        end()
      }
    }
    let end = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    void follow(end, ended)
  })
}

function agreedOf({ resourceSubscriptions, resourcesListChanged, promptsListChanged }: Wire): Told {
  const uris = Array.isArray(resourceSubscriptions) ? resourceSubscriptions : []
  return {
    uris: new Set(uris.filter((uri) => typeof uri === 'string')),
    list: resourcesListChanged === true,
    prompts: promptsListChanged === true,
    tools: false,
  }
}
