import { createHash } from 'node:crypto'
import { invalid } from '../core/errors.ts'
import { defined, isObject, stringItems } from '../core/kit/object.ts'
import type { Audience } from '../core/provider.ts'
import { type Encoding, encodings } from './tokens.ts'
import {
  type Assembled,
  type AssembleOptions,
  type Format,
  formats,
  type Level,
  levels,
  type ManifestEntry,
  type Pin,
} from './types.ts'

export interface Manifest {
  /** Time from which the ages of resources counted (RFC 3339). */
  readonly now?: string
  readonly query?: string
  readonly pins?: readonly Pin[]
  readonly pinsOnly?: boolean
  readonly excludes?: readonly string[]
  readonly mounts?: readonly string[]
  readonly budget?: number
  readonly reserve?: number
  readonly encoding?: Encoding
  readonly audience?: Audience
  readonly format?: Format
  readonly halfLife?: number
  readonly tokens?: number
  readonly sha256?: string
  /** Number of tokens at the beginning that are the same as in an earlier context, if one was given. */
  readonly reusedPrefixTokens?: number
  readonly manifest: readonly ManifestEntry[]
}

/** Returns the manifest of a context: the options it was made with, and its resources. */
export function manifestFor(options: AssembleOptions, assembled: Assembled): Manifest {
  const { now, query, pins, pinsOnly, excludes, mounts, reserve, audience, halfLife } = options
  const { budget, encoding, format, tokens, text, manifest, reusedPrefixTokens } = assembled
  return {
    now: new Date(now).toISOString(),
    ...defined({ query }),
    ...(pins === undefined ? {} : { pins: pins.map((pin) => (typeof pin === 'string' ? { uri: pin } : pin)) }),
    ...defined({ pinsOnly, excludes, mounts }),
    budget,
    ...defined({ reserve }),
    encoding,
    ...defined({ audience }),
    format,
    ...defined({ halfLife }),
    tokens,
    sha256: createHash('sha256').update(text.toWellFormed()).digest('hex'),
    ...defined({ reusedPrefixTokens }),
    manifest,
  }
}

/** How a resource differs between two manifests. */
export interface ManifestDifference {
  readonly uri: string
  /** `changed`: its text; `level`: its level or its lines; `gone`: it is not taken any more; `new`. */
  readonly what: 'changed' | 'level' | 'gone' | 'new'
  readonly from?: Level
  readonly to?: Level
}

/** Returns the differences between two manifests, in the order of the later one; removed resources come last. */
export function manifestDifferences(before: Manifest, after: Manifest): readonly ManifestDifference[] {
  const old = new Map(before.manifest.map((entry) => [entry.uri, entry] as const))
  const now = new Set(after.manifest.map(({ uri }) => uri))
  const differences = after.manifest.flatMap((entry): readonly ManifestDifference[] => {
    const { uri, level } = entry
    const was = old.get(uri)
    if (was === undefined) return [{ uri, what: 'new', to: level }]
    const isLess = was.level !== level || JSON.stringify(was.ranges) !== JSON.stringify(entry.ranges)
    if (was.sha256 !== entry.sha256) return [{ uri, what: 'changed', from: was.level, to: level }]
    return isLess ? [{ uri, what: 'level', from: was.level, to: level }] : []
  })
  const entries = before.manifest.filter(({ uri }) => !now.has(uri))
  return [...differences, ...entries.map(({ uri, level }) => ({ uri, what: 'gone' as const, from: level }))]
}

/**
 * Parses a manifest in JSON: from {@link manifestFor}, or the answer of `assemble_context`.
 *
 * @throws ResourceError `invalid` for other JSON.
 */
export function parseManifest(json: string): Manifest {
  const value = parseJsonArgument(json)
  if (!isObject(value) || !Array.isArray(value.manifest))
    throw invalid('This is not a manifest: it has no array "manifest".', 'argument')
  const { now, query, pinsOnly, budget, reserve, halfLife, tokens, sha256, reusedPrefixTokens } = value
  const encoding = encodings.find((one) => one === value.encoding)
  const format = formats.find((one) => one === value.format)
  const audience = (['user', 'assistant'] as const).find((one) => one === value.audience)
  const [excludes, mounts] = [optionalStrings(value.excludes), optionalStrings(value.mounts)]
  return {
    ...(typeof now === 'string' && !Number.isNaN(Date.parse(now)) ? { now } : {}),
    ...(typeof query === 'string' ? { query } : {}),
    ...(Array.isArray(value.pins) ? { pins: value.pins.flatMap(pinsIn) } : {}),
    ...(typeof pinsOnly === 'boolean' ? { pinsOnly } : {}),
    ...defined({ excludes, mounts }),
    ...(typeof budget === 'number' ? { budget } : {}),
    ...(typeof reserve === 'number' ? { reserve } : {}),
    ...defined({ encoding, audience, format }),
    ...(typeof halfLife === 'number' ? { halfLife } : {}),
    ...(typeof tokens === 'number' ? { tokens } : {}),
    ...(typeof sha256 === 'string' ? { sha256 } : {}),
    ...(typeof reusedPrefixTokens === 'number' ? { reusedPrefixTokens } : {}),
    manifest: value.manifest.map(entryIn),
  }
}

/**
 * Parses the pins of a basket in JSON: a manifest; a context in the format `json`; or an array of URIs, or of objects with a
 * `uri` and a `level`. `auto` and a missing level mean in full.
 *
 * @throws ResourceError `invalid` for other JSON.
 */
export function parseBasket(json: string): readonly Pin[] {
  const value = parseJsonArgument(json)
  const items = isObject(value) ? (value.manifest ?? value.items) : value
  if (!Array.isArray(items)) throw noBasket()
  const pins = items.filter((item) => !isNote(item)).flatMap(pinsIn)
  const all = items.filter((item) => !isNote(item))
  if (pins.length < all.length) throw noBasket()
  return pins
}

function noBasket() {
  return invalid(
    'This is not a basket. A basket is an array of URIs, or of objects with "uri" and "level", or a manifest.',
    'argument',
  )
}

/** The first element of a context in JSON is the note that the rest is data. */
function isNote(item: unknown): boolean {
  return isObject(item) && item.type === 'note'
}

function pinsIn(item: unknown): readonly Pin[] {
  if (typeof item === 'string' && item !== '') return [{ uri: item }]
  if (!isObject(item)) return []
  const uri = item.uri ?? item.source
  const level = levels.find((one) => one === item.level)
  return typeof uri === 'string' && uri !== '' ? [{ uri, ...defined({ level }) }] : []
}

function entryIn(item: unknown): ManifestEntry {
  const [pin] = pinsIn(item)
  if (pin === undefined || !isObject(item)) throw invalid('This is not a manifest: an entry has no URI.', 'argument')
  const { tokens, sha256, ranges, modified, version, prefix } = item
  return {
    uri: pin.uri,
    level: pin.level ?? 'full',
    tokens: typeof tokens === 'number' ? tokens : 0,
    ...(typeof sha256 === 'string' ? { sha256 } : {}),
    ...(Array.isArray(ranges) ? { ranges: ranges.flatMap(rangeIn) } : {}),
    ...(typeof modified === 'string' ? { modified } : {}),
    ...(typeof version === 'string' ? { version } : {}),
    ...(typeof prefix === 'string' ? { prefix } : {}),
  }
}

function rangeIn(value: unknown) {
  if (!isObject(value)) return []
  const { start, end } = value
  return typeof start === 'number' && typeof end === 'number' ? [{ start, end }] : []
}

function parseJsonArgument(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    throw invalid('This is not JSON.', 'argument')
  }
}

function optionalStrings(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? stringItems(value) : undefined
}
