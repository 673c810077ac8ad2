import type { View } from '../core/view.ts'
import { rankAll } from './rank.ts'
import { createContextReader, createExcluder } from './reader.ts'
import { type AssembleOptions, type Candidate, defaultLimits } from './types.ts'

export { assemble, type MeasuredItem, measure, type PinMeasurements } from './assemble.ts'
export {
  type Manifest,
  type ManifestDifference,
  manifestDifferences,
  manifestFor,
  parseBasket,
  parseManifest,
} from './manifest.ts'
export { type AssemblePromptOptions, withAssemblePrompt } from './prompt.ts'
export { type Encoding, encodings, maxCounted, openCounter, type TokenCounter } from './tokens.ts'
export { type AssembleToolOptions, createAssembleTool, createAssembleTurns } from './tool.ts'
export {
  type Assembled,
  type AssembledItem,
  type AssembleOptions,
  type Candidate,
  type ContentBlock,
  type ContextLimits,
  defaultLimits,
  type Explanation,
  type Factor,
  type Format,
  formats,
  type Level,
  type LevelTokens,
  type LineRange,
  levels,
  type ManifestEntry,
  type OmittedItem,
  type Pin,
  remoteLimits,
} from './types.ts'

/** Returns the candidates that `assemble` chooses from, the required ones before the others, best first, each with the reasons for its score. */
export async function rank(view: View, options: Omit<AssembleOptions, 'budget'>): Promise<readonly Candidate[]> {
  const limits = { ...defaultLimits, ...options.limits }
  const reader = createContextReader(view, limits, await createExcluder(view, options), options)
  return (await rankAll(view, { ...options, budget: 0 }, limits, reader)).candidates
}
