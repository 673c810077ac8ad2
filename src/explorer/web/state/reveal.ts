import { signal } from '@preact/signals'
import { browse } from './browse.ts'
import { go } from './place.ts'

/** The resource that the tree is to show: its row is scrolled to, once it is there. */
export const revealed = signal<{ readonly uri: string } | undefined>(undefined)

/** Whether the tree is on its way there. */
export const isRevealing = signal(false)

let running: AbortController | undefined

/** Shows a resource in the tree: opens the directories that it is in, and goes to its row. */
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

/** Opens the directories that a resource is in. Answers whether it is in the tree. */
export async function unfold(uri: string): Promise<boolean> {
  running?.abort()
  const controller = new AbortController()
  running = controller
  isRevealing.value = true
  try {
    const { forest } = browse.value ?? {}
    if (forest === undefined) return false
    if (forest.state === 'loading') await forest.start()
    // A part of a resource is in the tree as the whole of it.
    for (const one of new Set([uri, uri.replace(/[?#].*$/s, '')])) {
      if (!(await forest.reveal(one, controller.signal))) continue
      revealed.value = { uri: forest.nodeOf(one) === undefined ? `${one}/` : one }
      return true
    }
    return false
  } catch {
    // Another one took its place.
    return false
  } finally {
    if (running === controller) isRevealing.value = false
  }
}
