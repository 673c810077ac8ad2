import { effect, signal } from '@preact/signals'
import { contentLinkIn } from '../../../client/wire.ts'
import { isResourceError } from '../../../core/errors.ts'
import type { ChangesState } from '../mcp/changes.ts'
import type { ConnectOptions, PageConnection } from '../mcp/connect.ts'

/** The explored server: set once it has answered, before any component that needs it is drawn. */
export const connection = signal<PageConnection | undefined>(undefined)

export function requireConnection(): PageConnection {
  if (connection.value === undefined)
    throw new Error('A component that needs the connection was drawn before there is one.')
  return connection.value
}

/** Why there is no connection yet. `at`: the time of the next try, in milliseconds since 1970. */
export const connectionFailure = signal<{ readonly error: unknown; readonly at: number } | undefined>(undefined)

/**
 * A requirement of the server before it answers: `token`, an access token that the user can enter with `give`; or `address`: the user must
 * open the address that `hikidashi ui` prints.
 * `isRefused`: the token is invalid, or two browsers have used the address.
 */
export interface AccessRequirement {
  readonly what: 'token' | 'address'
  readonly isRefused: boolean
  give(token: string): void
}

export const accessRequirement = signal<AccessRequirement | undefined>(undefined)

/** State of the stream over which notifications of changes arrive. */
export const liveness = signal<ChangesState>('off')

/** Delays before the next tries to connect, in seconds (backoff). */
const retryDelaysSeconds = [1, 2, 4] as const

export async function startSession(connect: (options: ConnectOptions) => Promise<PageConnection>): Promise<void> {
  const options: ConnectOptions = {
    onChanges: (state) => {
      liveness.value = state
    },
  }
  for (let tries = 0; ; tries++) {
    try {
      connection.value = await connect(options)
      connectionFailure.value = undefined
      return
    } catch (error) {
      const waitMs = (retryDelaysSeconds[Math.min(tries, retryDelaysSeconds.length - 1)] ?? 4) * 1000
      connectionFailure.value = { error, at: Date.now() + waitMs }
      await untilRetry(waitMs)
    }
  }
}

const retrying = new EventTarget()

export function retryNow(): void {
  retrying.dispatchEvent(new Event('retry'))
}

function untilRetry(waitMs: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      retrying.removeEventListener('retry', end)
      removeEventListener('online', end)
      resolve()
    }
    const timer = setTimeout(end, waitMs)
    retrying.addEventListener('retry', end)
    addEventListener('online', end)
  })
}

/** Time after which a hidden page closes its stream of changes, in milliseconds. */
const hiddenTimeoutMs = 20_000

/** Closes the stream of changes while the page is hidden, and opens it when the page is shown again or the network is back. */
export function pauseChangesWhileHidden(): void {
  effect(() => {
    const changes = connection.value?.changes
    if (changes === undefined) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = () => {
      clearTimeout(timer)
      if (document.hidden) timer = setTimeout(changes.pause, hiddenTimeoutMs)
      else changes.resume()
    }
    document.addEventListener('visibilitychange', look)
    addEventListener('online', changes.retry)
    look()
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', look)
      removeEventListener('online', changes.retry)
    }
  })
}

/** Whether this browser has sent its one-time token again while it already had the session. */
export const isContinued = signal(false)

export function dismissContinued(): void {
  isContinued.value = false
}

/**
 * Exchanges the one-time token that `hikidashi ui` puts into the fragment for a session. The token is removed from the address and the
 * history before anything is drawn, and is not stored.
 */
export async function exchangeToken(url: string): Promise<void> {
  const params = new URLSearchParams(location.hash.slice(1))
  const token = params.get('token')
  if (token === null) return
  params.delete('token')
  const rest = params.toString()
  history.replaceState(null, '', rest === '' ? `${location.pathname}${location.search}` : `#${rest}`)
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    credentials: 'same-origin',
    redirect: 'error',
  }).catch(() => undefined)
  isContinued.value = answer?.headers.get('hikidashi-session') === 'continued'
}

/**
 * Returns a URL for the bytes of a resource that is too large for an answer, from the error of reading it. Undefined if the resource is not
 * too large, or if the server gives no link to this origin.
 *
 * @throws ResourceError of any other failure of the read.
 */
export async function largeContentUrl(uri: string, signal?: AbortSignal): Promise<string | undefined> {
  try {
    await requireConnection().view.read(uri, signal === undefined ? {} : { signal })
    return undefined
  } catch (error) {
    if (!isResourceError(error, 'too-large')) throw error
    return linkIn(error.cause)
  }
}

/** Returns the link to the bytes of a resource, from the data of a JSON-RPC error. `undefined`: the data contain no link to this origin. */
export function linkIn(data: unknown): string | undefined {
  return contentLinkIn(data, document.baseURI)?.href
}

/** Characters that file names may not contain on some system: separators, invisible and special characters. */
const notInNames = /[\p{C}\p{Zl}\p{Zp}<>:"/\\|?*%]+/gu
const reserved = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i

/** Makes a safe file name from any text: never a path, a hidden file or a device. At most 120 characters; `otherwise` if nothing is left. */
export function fileNameOf(text: string, otherwise = 'resource'): string {
  const name = text
    .normalize('NFC')
    .replace(notInNames, '_')
    .replace(/^[.\s]+|[.\s]+$/g, '')
  const dot = name.lastIndexOf('.')
  const end = dot > 0 && name.length - dot <= 12 ? name.slice(dot) : ''
  const characters = [...name.slice(0, name.length - end.length)]
  const short = `${characters.slice(0, 120 - end.length).join('')}${end}`
  if (short === '' || short === '_') return otherwise
  return reserved.test(short) ? `_${short}` : short
}
