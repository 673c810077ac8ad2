/** How much was spent on an answer. */
export const taskTypes = ['basic', 'premium', 'critical'] as const
export type TaskType = (typeof taskTypes)[number]

/** What one provider answered. What belongs to an answer is missing where there is an `error` instead. */
export interface Vote {
  /** Who answered. No other vote of the analysis has this name. */
  readonly provider: string
  readonly model: string
  readonly content?: string
  /** From 0 to 1. */
  readonly confidence?: number
  /** How far it agrees with the others, from 0 to 1. */
  readonly agreement?: number
  /** Input and output. */
  readonly tokens?: number
  /** In US dollars. */
  readonly cost?: number
  /** In milliseconds. */
  readonly duration?: number
  readonly error?: string
}

/** What is put: everything that the writer knows of an analysis. `analysisJsonSchema` tells the limits. */
export interface NewAnalysis {
  /** What was there under the same id is replaced. By default made from the content. */
  readonly id?: string
  /** The question that was asked. */
  readonly prompt: string
  readonly taskType: TaskType
  /** A language tag. */
  readonly language?: string
  readonly rounds: number
  readonly votes: readonly Vote[]
  /** What the aggregator made of the votes. `confidence` is from 0 to 1. */
  readonly consensus: { readonly content: string; readonly confidence: number; readonly reasoning?: string }
  /** What was asked of the consensus, from 0 to 1, and whether it was met. */
  readonly thresholds: { readonly met: boolean; readonly confidence?: number; readonly agreement?: number }
  /** In US dollars. By default the sum over the votes. */
  readonly totalCost?: number
  /** ISO 8601 with a zone. By default now. */
  readonly created?: string
  /** ISO 8601 with a zone: from when on it is not kept. By default as the server is told. */
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
