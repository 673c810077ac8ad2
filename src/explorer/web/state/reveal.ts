import { signal } from '@preact/signals'
import { browse } from './browse.ts'
import { go } from './place.ts'

/** The resource that the tree scrolls to, once its row exists. */
export const revealed = signal<{ readonly uri: string } | undefined>(undefined)

/** Whether the tree is still opening directories for it. */
export const isRevealing = signal(false)

let running: AbortController | undefined

/** Shows a resource in the tree: opens the directories above it, and goes to its row. */
export function reveal(uri: string): void {
  go({
    view: 'tree',
    uri,
    filter: undefined,
    mount: undefined,
    mime: undefined,
    audience: undefined,
    minPriority: undefined,
    since: undefined,
  })
  void unfold(uri)
}

/** Opens the directories above a resource. Returns whether it is in the tree. */
export async function unfold(uri: string): Promise<boolean> {
  running?.abort()
  const controller = new AbortController()
  running = controller
  isRevealing.value = true
  try {
    const { forest } = browse.value ?? {}
    if (forest === undefined) return false
    if (forest.state === 'loading') await forest.start()
    // The tree has the whole resource of which this is a part.
    for (const one of new Set([uri, uri.replace(/[?#].*$/s, '')])) {
      if (!(await forest.reveal(one, controller.signal))) continue
      revealed.value = { uri: forest.nodeOf(one) === undefined ? `${one}/` : one }
      return true
    }
    return false
  } catch {
    // A newer request replaced this one.
    return false
  } finally {
    if (running === controller) isRevealing.value = false
  }
}
