import { z } from 'zod'
import { invalid } from '../../core/errors.ts'
import { typeNames } from '../../schema/refusals.ts'
import { idPattern, nameFault } from './paths.ts'

/** Maximum sizes of the parts of a record, in characters or items. */
const largest = { prompt: 262_144, content: 524_288, name: 128, tag: 64, tags: 32, votes: 64, rounds: 1000 }

/** Task types: how much may be spent on an answer. */
export const taskTypes = ['basic', 'premium', 'critical'] as const
export type TaskType = (typeof taskTypes)[number]

/** Answer of one provider. With an `error`, its content, confidence and agreement may be missing. */
export interface Vote {
  /** Name of the provider, unique within the analysis. */
  readonly provider: string
  readonly model: string
  readonly content?: string
  /** Confidence of the provider in its answer, from 0 to 1. */
  readonly confidence?: number
  /** Agreement of the answer with the other answers, from 0 to 1. */
  readonly agreement?: number
  /** Number of tokens, input and output. */
  readonly tokens?: number
  /** Cost of the answer, in US dollars. */
  readonly cost?: number
  /** Duration of the answer, in milliseconds. */
  readonly duration?: number
  readonly error?: string
}

/** Input of a write. `analysisJsonSchema` has the limits. */
export interface NewAnalysis {
  /** Id of the analysis; an analysis with the same id is replaced. Default: derived from the content. */
  readonly id?: string
  readonly prompt: string
  readonly taskType: TaskType
  /** Language tag, such as `ja`. */
  readonly language?: string
  readonly rounds: number
  readonly votes: readonly Vote[]
  /** Result that the aggregator made from the votes. `confidence` is from 0 to 1. */
  readonly consensus: { readonly content: string; readonly confidence: number; readonly reasoning?: string }
  /** Required confidence and agreement of the consensus, from 0 to 1, and whether the consensus met them. */
  readonly thresholds: { readonly met: boolean; readonly confidence?: number; readonly agreement?: number }
  /** Total cost, in US dollars. By default the sum over the votes. */
  readonly totalCost?: number
  /** Creation time (ISO 8601 with a zone). By default now. */
  readonly created?: string
  /** Expiry time (ISO 8601 with a zone). By default as configured for the server. */
  readonly expires?: string
  readonly tags?: readonly string[]
}

export interface Analysis extends NewAnalysis {
  readonly id: string
  readonly language: string
  readonly totalCost: number
  readonly created: string
  /** The tags, unique and sorted. */
  readonly tags: readonly string[]
}

const fraction = z.number().min(0).max(1)
const name = z.string().min(1).max(largest.name).superRefine(withoutFault)
const content = z.string().max(largest.content)

const time = z.string().refine((text) => parseZonedTime(text) !== undefined, {
  error: 'It must be a time in ISO 8601 with its zone, such as "2026-05-01T09:30:00Z".',
})

const vote = z
  .strictObject({
    provider: name.describe(
      'The name of the model or service that answered. Each vote of an analysis has its own name.',
    ),
    model: name.describe('The model that answered.'),
    content: content.exactOptional().describe('The text of the answer. May be left out beside "error".'),
    confidence: fraction.exactOptional().describe('The confidence, from 0 to 1. May be left out beside "error".'),
    agreement: fraction
      .exactOptional()
      .describe('The agreement with the other answers, from 0 to 1. May be left out beside "error".'),
    tokens: z.int().min(0).exactOptional().describe('The number of tokens, input and output.'),
    cost: z.number().min(0).max(1e9).exactOptional().describe('The cost of the answer, in US dollars.'),
    duration: z.number().min(0).max(1e12).exactOptional().describe('The duration, in milliseconds.'),
    error: z
      .string()
      .min(1)
      .max(10_000)
      .exactOptional()
      .describe('The reason why the provider gave no answer, or only a part of an answer.'),
  })
  .superRefine((value, context) => {
    if (value.error !== undefined) return
    for (const key of ['content', 'confidence', 'agreement'] as const)
      if (value[key] === undefined)
        context.addIssue({
          code: 'custom',
          path: [key],
          message: 'It is missing. Only a vote with "error" may leave it out.',
        })
  })

const analysisSchema = z.strictObject({
  id: z
    .string()
    .regex(idPattern, {
      error: 'It must have 1 to 128 characters of A-Z a-z 0-9 . _ ~ - and begin with a letter or a digit.',
    })
    .exactOptional()
    .describe('The id of the result. A result with the same id is replaced. By default made from the content.'),
  prompt: z
    .string()
    .max(largest.prompt)
    .refine((text) => text.trim() !== '', { error: 'It is empty.' })
    .describe('The question that was asked.'),
  taskType: z.enum(taskTypes).describe('The type of the task, which sets the effort for the answer.'),
  language: z
    .string()
    .max(35)
    .regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, { error: 'It must be a language tag, such as "ja" or "en".' })
    .exactOptional()
    .describe('The language of the answer, such as "ja" or "en".'),
  rounds: z.int().min(1).max(largest.rounds).describe('The number of rounds in which the providers answered.'),
  votes: z
    .array(vote)
    .min(1)
    .max(largest.votes)
    .superRefine((votes, context) => {
      const ids = new Set<string>()
      for (const [index, { provider }] of votes.entries()) {
        if (ids.has(provider))
          context.addIssue({
            code: 'custom',
            path: [index, 'provider'],
            message: 'An earlier vote has the same name. Give each vote its own name, such as "gpt" and "gpt-second".',
          })
        ids.add(provider)
      }
    })
    .describe('The answer of each provider.'),
  consensus: z
    .strictObject({
      content: content.describe('The answer that the aggregator gives.'),
      confidence: fraction.describe('The confidence of the aggregator in this answer, from 0 to 1.'),
      reasoning: content.exactOptional().describe('The reasoning that led to this answer.'),
    })
    .describe('The summary that the aggregator made of the votes.'),
  thresholds: z
    .strictObject({
      met: z.boolean().describe('Whether the consensus met the requirements.'),
      confidence: fraction.exactOptional().describe('The required confidence, from 0 to 1.'),
      agreement: fraction.exactOptional().describe('The required agreement, from 0 to 1.'),
    })
    .describe('The requirements on the consensus, and whether they were met.'),
  totalCost: z
    .number()
    .min(0)
    .max(1e12)
    .exactOptional()
    .describe('The cost of all answers, in US dollars. By default the sum over the votes.'),
  created: time.exactOptional().describe('The time at which the analysis was made (ISO 8601). By default now.'),
  expires: time
    .exactOptional()
    .describe('The time at which the result expires (ISO 8601). By default the server decides.'),
  tags: z
    .array(z.string().min(1).max(largest.tag).superRefine(withoutFault))
    .max(largest.tags)
    .exactOptional()
    .describe('Words by which the result can be found, in addition to its prompt.'),
})

function withoutFault(text: string, context: z.RefinementCtx): void {
  const fault = nameFault(text)
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
}

/** Returns an ISO 8601 time with a zone in milliseconds since 1970. Undefined: the time is invalid. */
export function parseZonedTime(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/.test(text)) return undefined
  const time = Date.parse(text)
  return Number.isNaN(time) ? undefined : time
}

/**
 * Validates a write. Returns it with U+FFFD for lone surrogates, and with the tags in NFC, unique and sorted.
 *
 * @throws ResourceError `invalid` (reason `argument`), which names up to five faulty fields.
 */
export function parseAnalysis(value: unknown): NewAnalysis {
  const { data, error } = analysisSchema.safeParse(value, { error: wordsFor })
  if (data === undefined) {
    const faults = faultsOf(error.issues)
    throw invalid(faults.map(({ text }) => text).join('\n'), 'argument', { field: faults[0]?.field ?? '' })
  }
  const { tags, ...rest } = wellFormed(data) as NewAnalysis
  return tags === undefined ? rest : { ...rest, tags: [...new Set(tags.map((tag) => tag.normalize('NFC')))].sort() }
}

function wellFormed(value: unknown): unknown {
  return mapTexts(value, (text) => text.toWellFormed())
}

/** Changes every text in a JSON value. Keys stay unchanged. */
export function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change))
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, mapTexts(member, change)]))
}

/** Returns the JSON Schema (draft 2020-12) of {@link NewAnalysis}, for tools. */
export function analysisJsonSchema(): Readonly<Record<string, unknown>> {
  const { $schema: _, ...schema } = z.toJSONSchema(analysisSchema, { io: 'input' })
  return schema
}

interface FieldFault {
  /** Path of the field, such as `votes[0].confidence`; empty for the record as a whole. */
  readonly field: string
  readonly text: string
}

/** Maximum number of faults reported at once, and maximum number of characters shown of an unknown name. */
const [maxFaults, maxName] = [5, 64]

/** Undefined: the message of zod is used. The message repeats only numbers, lengths and unknown keys of the input. */
function wordsFor(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'It is missing.'
      return `It must be ${typeNames[issue.expected] ?? issue.expected}, and is ${describeType(issue.input)}.`
    case 'invalid_value':
      return `It must be one of ${issue.values.map((value) => JSON.stringify(value)).join(', ')}.`
    case 'too_small':
    case 'too_big': {
      const bound = issue.code === 'too_small' ? issue.minimum : issue.maximum
      const word = issue.code === 'too_small' ? 'at least' : 'at most'
      const { input } = issue
      if (typeof input === 'string')
        return input === '' ? 'It is empty.' : `It must have ${word} ${bound} characters, and has ${input.length}.`
      if (Array.isArray(input))
        return input.length === 0 ? 'It is empty.' : `It must have ${word} ${bound} items, and has ${input.length}.`
      return `It must be ${word} ${bound}, and is ${String(input)}.`
    }
    case 'unrecognized_keys': {
      const names = issue.keys.slice(0, 3).map((key) => JSON.stringify(key.slice(0, maxName).toWellFormed()))
      return `These keys are unknown: ${names.join(', ')}${issue.keys.length > 3 ? ' and others' : ''}.`
    }
    default:
      return undefined
  }
}

function faultsOf(issues: readonly z.core.$ZodIssue[]): readonly FieldFault[] {
  return issues.slice(0, maxFaults).map(({ path, message }) => {
    const field = path.reduce<string>((before, step) => {
      if (typeof step === 'number') return `${before}[${step}]`
      return before === '' ? String(step) : `${before}.${String(step)}`
    }, '')
    return { field, text: field === '' ? message : `${field}: ${message}` }
  })
}

function describeType(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'number') return Number.isFinite(value) ? `the number ${value}` : 'no finite number'
  return typeNames[typeof value] ?? typeof value
}
