import { signal } from '@preact/signals'
import { followSteps, pushStep, replaceStep } from './browser.ts'

/**
 * The state of the page's navigation. It is in the fragment of the URL, so that every view has a permalink, and the server does not see it.
 */
export interface Route {
  readonly view?: 'tree' | 'list' | 'search' | 'templates'
  readonly uri?: string
  /** The listed directory; undefined: all resources. */
  readonly in?: string
  readonly q?: string
  /** Words of the filter of the rows, as typed. */
  readonly filter?: string
  /** Sort order: `name`, `modified`, `size`, `type` or `priority`; descending with `-` in front. */
  readonly sort?: string
  /** Facets: addresses of mounts, types (`text/markdown`, `text/*`, `none`) and roles, one or several, separated by a space. */
  readonly mount?: string
  readonly mime?: string
  readonly audience?: string
  readonly minPriority?: string
  /** Maximum age, such as `7d`, or a date. */
  readonly since?: string
  /** The open template, and the values of its variables as a query string. */
  readonly template?: string
  readonly values?: string
  /** The open prompt, with its values in the same form. */
  readonly prompt?: string
  readonly source?: string
  /** The marked lines of the shown resource: `12`, or `12-20`. */
  readonly line?: string
  /** The resource of the second preview, beside the first. */
  readonly beside?: string
  readonly basket?: string
  /** Items of a shared link for the basket: lines of a level and a URI. */
  readonly picks?: string
}

const names = [
  ...['view', 'uri', 'in', 'q', 'filter', 'sort', 'mount', 'mime', 'audience', 'minPriority', 'since'],
  ...['template', 'prompt', 'values', 'source', 'line', 'beside', 'basket', 'picks'],
] as const

const views = new Set(['tree', 'list', 'search', 'templates'])

function routeOf(fragment: string): Route {
  const params = new URLSearchParams(fragment.replace(/^#/, ''))
  const valuesByName: Record<string, string> = {}
  for (const name of names) {
    const value = params.get(name)
    if (value === null || value === '' || (name === 'view' && !views.has(value))) continue
    valuesByName[name] = value
  }
  return valuesByName
}

export function fragmentOf(route: Route): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(route)) if (value !== undefined && value !== '') params.set(name, value)
  return `#${params}`
}

export function permalinkUrl(fragment: string): string {
  return `${location.href.replace(/#.*$/s, '')}${fragment}`
}

export const route = signal<Route>({})

export type RouteChange = { readonly [Name in keyof Route]?: Route[Name] | undefined }

function changed(change: RouteChange): Route {
  // The marked lines are those of the shown resource, so a change of the resource removes them.
  const isElsewhere = 'uri' in change && change.uri !== route.value.uri && !('line' in change)
  const next = Object.entries({ ...route.value, ...change, ...(isElsewhere ? { line: undefined } : {}) }).filter(
    ([, value]) => value !== undefined && value !== '',
  )
  return Object.fromEntries(next)
}

export function linkTo(change: RouteChange): string {
  return fragmentOf(changed(change))
}

/** Navigates. `replace`: replaces the current step of the history, as for a field that changes at every key press. */
export function navigate(change: RouteChange, { replace = false } = {}): void {
  const next = changed(change)
  const fragment = fragmentOf(next)
  if (fragment === fragmentOf(route.value)) return
  if (replace) replaceStep(fragment)
  else pushStep(fragment)
  route.value = next
}

/** Updates the route whenever the fragment in the address bar changes. */
export function followAddress(): void {
  followSteps((fragment) => {
    route.value = routeOf(fragment)
  })
}

/** Parses `line` of a permalink: `12`, or `12-20`. `undefined`: no lines are marked. */
export function parseLineRange(text: string | undefined) {
  const [, from, to] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(text ?? '') ?? []
  if (from === undefined) return undefined
  const [first, last] = [Number(from), Number(to ?? from)]
  return first <= last ? { first, last } : { first: last, last: first }
}

/** Returns `line` of the permalink after a click on a line number. `isExtended`: the marked lines reach to the number. `undefined`: the mark is removed. */
export function markedLinesAfterClick(number: number, isExtended: boolean): string | undefined {
  const now = parseLineRange(route.value.line)
  if (isExtended && now !== undefined) return `${Math.min(now.first, number)}-${Math.max(now.last, number)}`
  return route.value.line === String(number) ? undefined : String(number)
}

/** The line number that was clicked. `undefined`: something else was clicked. */
export function lineNumberAt({ target }: Event): number | undefined {
  // The element of the line draws the number. The code is an element in it, so a click on the code has another target.
  if (!(target instanceof HTMLElement) || !target.classList.contains('line')) return undefined
  const number = Number(target.dataset.n)
  return Number.isSafeInteger(number) ? number : undefined
}

/** The hit that is previewed while the user goes through the results. It is not part of the permalink. */
export const previewedHit = signal<string | undefined>(undefined)
