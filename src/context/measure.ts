import { setImmediate as turn } from 'node:timers/promises'
import type { Resource, View } from '../core/view.ts'
import { formsOf } from './forms.ts'
import { rankAll } from './rank.ts'
import { createReader, matcherOf } from './reader.ts'
import { rendererOf } from './render.ts'
import { openCounter } from './tokens.ts'
import { type AssembleOptions, checked, type Level, type LevelTokens } from './types.ts'

/** Token counts of pins, before a context is assembled. */
export interface Measured {
  readonly items: readonly MeasuredItem[]
  /** Tokens of all existing pins, each at its level, plus `frame`. */
  readonly tokens: number
  /** Tokens of the note around them. */
  readonly frame: number
}

export interface MeasuredItem {
  readonly uri: string
  readonly resource: Resource
  /** The level of the pin, or the next lower one that exists. */
  readonly level: Level
  readonly tokens: number
  readonly levels: LevelTokens
  /** The resource does not exist, or is denied. */
  readonly missing: boolean
  readonly notes: readonly string[]
}

/**
 * Counts the tokens of pins at every level. Pins over the budget and missing pins are no errors, because a person who picks wants
 * to see them.
 *
 * @throws ResourceError `invalid` for faulty options.
 */
export async function measure(view: View, options: Omit<AssembleOptions, 'budget' | 'reserve'>): Promise<Measured> {
  const { encoding = 'o200k_base', format = 'markdown', signal } = options
  const given = { ...options, budget: 0, pinsOnly: true }
  const limits = checked(given)
  const counter = await openCounter(encoding)
  const renderer = rendererOf(format)
  const reader = createReader(view, limits, matcherOf(options.excludes ?? []), options)
  const { candidates, terms } = await rankAll(view, given, limits, reader)
  const readings = await reader.read(candidates.map(({ resource }) => resource.uri))
  const forming = { counter, renderer, format, terms, most: Number.POSITIVE_INFINITY, countLevels: true, signal }
  const frame = (await counter.count(renderer.head)) + (await counter.count(renderer.tail))
  const items: MeasuredItem[] = []
  for (const [index, candidate] of candidates.entries()) {
    await turn()
    signal?.throwIfAborted()
    const { resource } = candidate
    const reading = readings[index]
    const missing = reading !== undefined && 'fault' in reading && reading.fault === 'not-found'
    const { forms, levels, notes } = await formsOf(candidate, reading, forming, index)
    const [form] = forms
    if (form === undefined) continue
    const { tokens, part } = form
    items.push({
      uri: resource.uri,
      resource,
      level: part.level,
      tokens,
      levels: (await levels?.()) ?? {},
      missing,
      notes,
    })
  }
  const there = items.filter(({ missing }) => !missing)
  const tokens = there.reduce((sum, item) => sum + item.tokens, there.length === 0 ? 0 : frame)
  return { items, tokens, frame }
}
