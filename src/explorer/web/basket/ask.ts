import {
  type BasketItem,
  type BasketPlan,
  type ContentLevel,
  contentLevels,
  type TokenCost,
} from '../../../browse/basket.ts'
import { resourcesOf, type WireObject } from '../../../client/wire.ts'
import { objectOf, objectsIn, stringItems } from '../../../core/kit/object.ts'
import type { Resource } from '../../../core/view.ts'
import { readableUri } from '../listing/columns.ts'
import type { PageConnection } from '../mcp/connect.ts'

/** Name of the tool that counts tokens, suggests resources and assembles contexts. */
export const assembleToolName = 'assemble_context'

export const basketFormats = ['xml', 'markdown', 'json'] as const
export type BasketFormat = (typeof basketFormats)[number]

export const tokenEncodings = ['o200k_base', 'cl100k_base'] as const
export type TokenEncoding = (typeof tokenEncodings)[number]

/** Settings that the user chooses for the assembly of a context. */
export interface AssemblySettings {
  readonly budget: number
  readonly encoding: TokenEncoding
  readonly format: BasketFormat
  /** Question or task of the context. */
  readonly purpose: string
}

interface BasketCosts {
  readonly costs: ReadonlyMap<string, TokenCost>
  /** Number of tokens of the text around the resources. */
  readonly frame: number
}

/** Requests the number of tokens of each item at each level. */
export async function requestBasketCosts(
  connection: PageConnection,
  items: readonly BasketItem[],
  settings: AssemblySettings,
  signal: AbortSignal,
): Promise<BasketCosts> {
  const pins = items.map(({ resource }) => resource.uri)
  const structured = await connection.call(
    assembleToolName,
    { measure: true, pins, ...assembleArguments(settings) },
    signal,
  )
  // The server may escape a URI in another way, so its readable form is the key.
  const costs = new Map(objectsIn(structured.items).map((item) => [readableUri(String(item.uri)), costOf(item)]))
  return {
    frame: numberOrZero(structured.frame),
    costs: new Map(pins.map((uri) => [uri, costs.get(readableUri(uri)) ?? uncounted])),
  }
}

/** Cost of an item without an answer, so that it is not requested again. */
const uncounted: TokenCost = { levels: {}, missing: false, notes: [] }

function costOf(item: WireObject): TokenCost {
  const levels = objectOf(item.levels)
  const counts = contentLevels.flatMap((level) =>
    typeof levels[level] === 'number' ? [[level, levels[level]] as const] : [],
  )
  return {
    levels: Object.fromEntries(counts),
    missing: item.missing === true,
    notes: stringItems(item.notes),
  }
}

export interface AssembledContext {
  readonly text: string
  readonly tokens: number
  readonly manifest: unknown
}

/** Requests the text and the manifest of the planned context. */
export async function assemble(
  connection: PageConnection,
  plan: BasketPlan,
  settings: AssemblySettings,
  signal?: AbortSignal,
): Promise<AssembledContext> {
  const pins = plan.items
    .filter(({ missing }) => !missing)
    .map(({ resource, taken }) => ({ uri: resource.uri, level: taken }))
  const structured = await connection.call(
    assembleToolName,
    { pins, pins_only: true, ...assembleArguments(settings) },
    signal,
  )
  return {
    text: typeof structured.text === 'string' ? structured.text : '',
    tokens: numberOrZero(structured.tokens),
    manifest: {
      now: structured.now,
      query: structured.query,
      tokens: structured.tokens,
      encoding: structured.encoding,
      format: structured.format,
      manifest: structured.manifest,
    },
  }
}

/** A resource that may help and is not in the basket. */
export interface Suggestion {
  readonly resource: Resource
  /** Why the resource is suggested: one line for each factor. */
  readonly because: readonly string[]
}

/** Requests at most 8 further resources that may help. */
export async function suggest(
  connection: PageConnection,
  items: readonly BasketItem[],
  { purpose, encoding }: AssemblySettings,
  signal: AbortSignal,
): Promise<readonly Suggestion[]> {
  const pins = items.map(({ resource, level }) => ({
    uri: resource.uri,
    level: (level === 'auto' ? 'link' : level) satisfies ContentLevel,
  }))
  const query = purpose.trim() === '' ? {} : { query: purpose }
  const structured = await connection.call(
    assembleToolName,
    { suggest: true, limit: 8, pins, encoding, ...query },
    signal,
  )
  return objectsIn(structured.suggestions).flatMap((item) => {
    const [resource] = resourcesOf([item])
    if (resource === undefined) return []
    const explanation = objectOf(item.explanation)
    return [
      {
        resource,
        because: objectsIn(explanation.factors).map(
          (factor) => `${String(factor.name)} × ${numberOrZero(factor.value).toFixed(2)}: ${String(factor.because)}`,
        ),
      },
    ]
  })
}

function assembleArguments({ budget, encoding, format, purpose }: AssemblySettings) {
  return { budget, encoding, format, ...(purpose.trim() === '' ? {} : { query: purpose }) }
}

function numberOrZero(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}
