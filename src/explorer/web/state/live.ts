import { effect, signal } from '@preact/signals'
import type { Subscription } from '../../../core/view.ts'
import type { PageChange } from '../mcp/changes.ts'
import { findCachedResource, kindAt, loadPrompts } from './offered.ts'
import { connection } from './session.ts'

export const changedUris = signal<ReadonlySet<string>>(new Set())

export function markSeen(uri: string): void {
  if (changedUris.value.has(uri)) changedUris.value = new Set([...changedUris.value].filter((one) => one !== uri))
}

/** Maximum number of marks. The oldest marks are removed first. */
const mostMarks = 10_000

export function markChanged(uris: Iterable<string>): void {
  const next = new Set(changedUris.value)
  for (const uri of uris) {
    if (isAlwaysChanging(uri)) continue
    next.delete(uri)
    next.add(uri)
  }
  changedUris.value = next.size <= mostMarks ? next : new Set([...next].slice(-mostMarks))
}

/** Whether a resource differs at every read, such as a series of measurements: a mark would say nothing about it. */
function isAlwaysChanging(uri: string): boolean {
  return (
    /format=hikidashi\.Series|openmetrics/i.test(findCachedResource(uri)?.mimeType ?? '') ||
    kindAt(uri)?.isLive === true
  )
}

type ListListener = (change: { readonly missed: boolean }) => void

const ofUri = new Map<string, Set<(missed: boolean) => void>>()
const ofList = new Set<ListListener>()
let hearsPrompts = false
let subscription: Subscription | undefined

/**
 * Notifies a listener when a resource changes, or may have changed while the connection was down (`missed`).
 *
 * @returns A function that ends the notifications.
 */
export function onResourceChange(uri: string, listener: (missed: boolean) => void): () => void {
  const listeners = ofUri.get(uri) ?? new Set()
  listeners.add(listener)
  ofUri.set(uri, listeners)
  if (listeners.size === 1) subscription?.add([uri]).catch(() => {})
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0 || ofUri.get(uri) !== listeners) return
    ofUri.delete(uri)
    subscription?.remove(uri)
  }
}

/** Notifies a listener when entries are added or removed. Returns a function that ends the notifications. */
export function onListChange(listener: ListListener): () => void {
  ofList.add(listener)
  if (ofList.size === 1) subscription?.addList().catch(() => {})
  return () => ofList.delete(listener)
}

export function followPrompts(): Promise<void> {
  if (!hearsPrompts) addPrompts(subscription)
  hearsPrompts = true
  return loadPrompts()
}

/** Subscribes to changes of the prompts, and loads them again. */
function addPrompts(subscription: Subscription | undefined): void {
  subscription?.addPrompts?.().then(
    (isTold) => {
      if (isTold) void loadPrompts()
    },
    () => {},
  )
}

function hear({ uris, listed, prompts, missed: isMissed }: PageChange): void {
  const missed = isMissed === true
  for (const uri of uris) for (const listener of [...(ofUri.get(uri) ?? [])]) listener(missed)
  if (listed) for (const listener of [...ofList]) listener({ missed })
  if (prompts === true) void loadPrompts()
}

/** Opens the one subscription of the page, once there is a connection. */
export function followChanges(): void {
  effect(() => {
    const changes = connection.value?.changes
    if (changes === undefined) return
    const handle = changes.open(hear)
    subscription = handle
    if (ofUri.size > 0) handle.add([...ofUri.keys()]).catch(() => {})
    if (ofList.size > 0) handle.addList().catch(() => {})
    if (hearsPrompts) addPrompts(handle)
    return () => handle.close()
  })
}
