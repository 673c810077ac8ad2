/** The cost of an answer. */
export const taskTypes = ['basic', 'premium', 'critical'] as const
export type TaskType = (typeof taskTypes)[number]

/** Answer of one provider. When it has an `error`, the members of an answer are missing. */
export interface Vote {
  /** Name of the provider, unique within the analysis. */
  readonly provider: string
  readonly model: string
  readonly content?: string
  /** From 0 to 1. */
  readonly confidence?: number
  /** Its agreement with the other answers, from 0 to 1. */
  readonly agreement?: number
  /** Input and output. */
  readonly tokens?: number
  /** In US dollars. */
  readonly cost?: number
  /** In milliseconds. */
  readonly duration?: number
  readonly error?: string
}

/** Input of a write: all data that the writer has about an analysis. `analysisJsonSchema` has the limits. */
export interface NewAnalysis {
  /** Id of the analysis; an analysis with the same id is replaced. Default: derived from the content. */
  readonly id?: string
  /** The question. */
  readonly prompt: string
  readonly taskType: TaskType
  /** A language tag. */
  readonly language?: string
  readonly rounds: number
  readonly votes: readonly Vote[]
  /** Result that the aggregator made from the votes. `confidence` is from 0 to 1. */
  readonly consensus: { readonly content: string; readonly confidence: number; readonly reasoning?: string }
  /** Required confidence and agreement of the consensus, from 0 to 1, and whether it met them. */
  readonly thresholds: { readonly met: boolean; readonly confidence?: number; readonly agreement?: number }
  /** In US dollars. By default the sum over the votes. */
  readonly totalCost?: number
  /** ISO 8601 with a zone. By default now. */
  readonly created?: string
  /** Expiry time (ISO 8601 with a zone). By default as configured for the server. */
  readonly expires?: string
  readonly tags?: readonly string[]
}

/** An analysis as it is kept. */
export interface Analysis extends NewAnalysis {
  readonly id: string
  readonly language: string
  readonly totalCost: number
  readonly created: string
  /** Each once, in order. */
  readonly tags: readonly string[]
}
