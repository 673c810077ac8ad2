import { signal } from '@preact/signals'

/** Whether this browser has sent its one-time token again while it already had the session. */
export const isContinued = signal(false)

export function dismissContinued(): void {
  isContinued.value = false
}

/**
 * Takes the one-time token that `hikidashi ui` puts into the fragment, and has the server open a session for it. It is gone from the
 * address and the history before anything is drawn, and nothing keeps it. If the server refuses it, the first request fails.
 */
export async function takeTicket(url: string): Promise<void> {
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
