import { signal } from '@preact/signals'
import type { Resource } from '../../../core/view.ts'

/** How much of a resource can be taken, as `assemble_context` has it, most first. */
export const levels = ['full', 'windows', 'outline', 'link'] as const
export type Level = (typeof levels)[number]

/** `auto`: as much as fits. */
export type BasketLevel = 'auto' | Level

export interface BasketItem {
  readonly resource: Resource
  readonly level: BasketLevel
}

/** What was picked, in the order in which it was. */
export const basket = signal<readonly BasketItem[]>([])

/** As many as `assemble_context` takes. */
export const mostPicked = 500

export function isPicked(uri: string): boolean {
  return basket.value.some(({ resource }) => resource.uri === uri)
}

/** Puts a resource into the basket, or takes it out. A directory stays where it is: what is in it is picked one by one. */
export function toggle(resource: Resource): void {
  if (isPicked(resource.uri)) remove(resource.uri)
  else add([{ resource, level: 'auto' }])
}

/** Puts in what is not there yet, as long as there is room. */
export function add(items: readonly BasketItem[]): void {
  const picked = new Set(basket.value.map(({ resource }) => resource.uri))
  const fresh = items.filter(({ resource }) => !resource.uri.endsWith('/') && !picked.has(resource.uri))
  if (fresh.length > 0) basket.value = [...basket.value, ...fresh].slice(0, mostPicked)
}

export function remove(uri: string): void {
  basket.value = basket.value.filter(({ resource }) => resource.uri !== uri)
}

export function setLevel(uri: string, level: BasketLevel): void {
  basket.value = basket.value.map((item) => (item.resource.uri === uri ? { ...item, level } : item))
}

/** Moves one by so many places. */
export function move(uri: string, by: number): void {
  const items = [...basket.value]
  const at = items.findIndex(({ resource }) => resource.uri === uri)
  const [item] = items.splice(at, 1)
  if (at === -1 || item === undefined) return
  items.splice(Math.max(0, Math.min(items.length, at + by)), 0, item)
  basket.value = items
}
