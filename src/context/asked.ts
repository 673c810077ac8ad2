import { invalid } from '../core/errors.ts'
import { defined, objectSchema } from '../core/kit/object.ts'
import { type ArgumentReader, createArgumentReader, type JsonObject } from '../core/tool.ts'
import { encodings } from './tokens.ts'
import { type AssembleOptions, formats, levels, type ManifestEntry, type Pin } from './types.ts'

const most = {
  ...{ query: 4000, pins: 500, excludes: 500, mounts: 100, uri: 8192, budget: 1_000_000, suggested: 100 },
  ...{ earlier: 999, ranges: 1000 },
}
const otherwise = { budget: 8000, suggested: 20 }
const audiences = ['user', 'assistant'] as const

const uriSchema = { type: 'string', maxLength: most.uri }

export const assembleInputSchema: JsonObject = objectSchema([], {
  query: {
    type: 'string',
    maxLength: most.query,
    description: 'The question or task that the context is for, in words.',
  },
  budget: {
    anyOf: [{ type: 'integer', minimum: 0, maximum: most.budget }, { type: 'string' }],
    description: `Maximum number of tokens of the answer, such as 16000 or "16k". By default ${otherwise.budget}.`,
  },
  pins: {
    type: 'array',
    maxItems: most.pins,
    items: {
      anyOf: [uriSchema, objectSchema(['uri'], { uri: uriSchema, level: { type: 'string', enum: levels } })],
    },
    description:
      'URIs of resources that the context must have, each with its whole text; or { "uri", "level" } for exactly that level: "link", "outline", "windows" (the text around the words of the query) or "full".',
  },
  excludes: {
    type: 'array',
    maxItems: most.excludes,
    items: uriSchema,
    description:
      'URIs that are left out. One that ends in "/" stands for everything below it; one with an asterisk is a glob: "**/*.test.ts", or "file:///srv/docs/**/*.log".',
  },
  mounts: {
    type: 'array',
    maxItems: most.mounts,
    items: uriSchema,
    description: 'The addresses of the mounts to use, as browse_directory shows them. By default all.',
  },
  pins_only: { type: 'boolean', description: 'Include the pins and nothing else. By default false.' },
  format: { type: 'string', enum: formats, description: 'The format of the answer. By default "markdown".' },
  encoding: {
    type: 'string',
    enum: encodings,
    description: 'The encoding by which tokens are counted. By default "o200k_base".',
  },
  audience: { type: 'string', enum: audiences, description: 'The audience of the context. By default "assistant".' },
  reserve: {
    type: 'number',
    minimum: 0,
    maximum: 0.5,
    description: 'The share of the budget to leave free. By default 0.03.',
  },
  half_life_days: {
    type: 'number',
    description: 'The age in days at which the weight of recency has halved. By default 30.',
  },
  fresh: { type: 'boolean', description: 'Wait until every change before the call can be found. By default false.' },
  now: { type: 'string', description: 'The time from which ages count, as in RFC 3339. By default now.' },
  earlier: {
    type: 'array',
    maxItems: most.earlier,
    items: objectSchema(['uri', 'level'], { uri: uriSchema, level: { type: 'string', enum: levels } }),
    description:
      'The "manifest" of an earlier answer: the front of the text stays the same if that costs little, so that a prompt cache can be used.',
  },
  suggest: {
    type: 'boolean',
    description: 'Only list the candidates, best first, without reading and counting all of them. By default false.',
  },
  limit: {
    type: 'integer',
    minimum: 1,
    maximum: most.suggested,
    description: `With suggest: the maximum number of candidates. By default ${otherwise.suggested}.`,
  },
  measure: {
    type: 'boolean',
    description: 'Only count the tokens of each pin at each level, whether they fit or not. By default false.',
  },
})

export interface ContextCall {
  readonly what: 'assemble' | 'suggest' | 'measure'
  readonly options: AssembleOptions
  readonly limit: number
}

/** @throws ResourceError `invalid`, which names the argument. */
export function parseContextCall(contextArgs: JsonObject, now: () => number): ContextCall {
  const args = createArgumentReader(contextArgs, assembleInputSchema)
  const suggest = args.flag('suggest')
  const measure = args.flag('measure')
  if (suggest && measure) throw invalid('"suggest" and "measure" exclude each other. Leave one out.', 'argument')
  const query = args.text('query', most.query)
  const pins = args.list('pins', most.pins, pinIn)
  if (measure && pins === undefined) throw invalid('"measure" needs "pins". Add the URIs to measure.', 'argument')
  const halfLife = args.number('half_life_days')
  const format = args.choice('format', formats)
  const encoding = args.choice('encoding', encodings)
  const audience = args.choice('audience', audiences)
  const reserve = args.number('reserve')
  const excludes = args.list('excludes', most.excludes, uriIn)
  // A host that fills in every argument sends an empty list: it means all mounts.
  const mounts = args.list('mounts', most.mounts, uriIn) ?? []
  const earlier = args.list('earlier', most.earlier, entryIn)
  const options: AssembleOptions = {
    budget: budgetIn(args.given.budget),
    now: timeIn(args) ?? now(),
    countLevels: true,
    ...defined({ query, pins, excludes, earlier }),
    ...(mounts.length === 0 ? {} : { mounts }),
    ...(args.flag('pins_only') ? { pinsOnly: true } : {}),
    ...defined({ format, encoding, audience, reserve }),
    ...(args.flag('fresh') ? { fresh: true } : {}),
    ...(halfLife === undefined ? {} : { halfLife: halfLife * 86_400_000 }),
  }
  const limit = args.count('limit', { least: 1, most: most.suggested, otherwise: otherwise.suggested })
  return { what: suggest ? 'suggest' : measure ? 'measure' : 'assemble', options, limit }
}

function budgetIn(value: unknown): number {
  if (value === undefined) return otherwise.budget
  const budget = typeof value === 'string' ? parseBudget(value) : value
  if (typeof budget === 'number' && Number.isSafeInteger(budget) && budget >= 0 && budget <= most.budget) return budget
  throw invalid(`"budget" must be a number of tokens from 0 to ${most.budget}, such as 8000 or "8k".`, 'argument')
}

/** Parses a budget such as `8000`, `200,000`, `32k`, `1.5k` or `1m`, in tokens. `undefined` if it is invalid. */
export function parseBudget(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,12}(?:\.\d{1,6})?)([km]?)$/i.exec(text.trim().replaceAll(/[_,]/g, '')) ?? []
  if (digits === undefined) return undefined
  const times = { '': 1, k: 1000, m: 1_000_000 }[unit?.toLowerCase() ?? ''] ?? 1
  const tokens = Number(digits) * times
  return Number.isSafeInteger(Math.round(tokens)) && Math.abs(tokens - Math.round(tokens)) < 1e-6
    ? Math.round(tokens)
    : undefined
}

function uriIn(value: unknown, name: string): string {
  if (typeof value !== 'string' || value === '') throw invalid(`"${name}" must be a URI.`, 'argument')
  if (value.length > most.uri) throw invalid(`"${name}" must have at most ${most.uri} characters.`, 'argument')
  return value
}

function pinIn(value: unknown, name: string): string | Pin {
  if (typeof value !== 'object' || value === null) return uriIn(value, name)
  const { uri, level, ...rest } = value as Readonly<Record<string, unknown>>
  const validLevel = levels.find((one) => one === level)
  if (Object.keys(rest).length > 0)
    throw invalid(`"${name}" has an unknown member. The members are: uri, level.`, 'argument')
  if (level !== undefined && validLevel === undefined)
    throw invalid(`"${name}.level" must be one of ${levels.join(', ')}.`, 'argument')
  return { uri: uriIn(uri, `${name}.uri`), ...defined({ level: validLevel }) }
}

function entryIn(value: unknown, name: string): ManifestEntry {
  if (typeof value !== 'object' || value === null)
    throw invalid(`"${name}" must be an entry of a manifest.`, 'argument')
  const { uri, level, ranges = [], prefix } = value as Readonly<Record<string, unknown>>
  const validLevel = levels.find((one) => one === level)
  if (validLevel === undefined) throw invalid(`"${name}.level" must be one of ${levels.join(', ')}.`, 'argument')
  if (!Array.isArray(ranges) || ranges.length > most.ranges)
    throw invalid(`"${name}.ranges" must be an array of at most ${most.ranges} ranges of lines.`, 'argument')
  if (prefix !== undefined && typeof prefix !== 'string')
    throw invalid(`"${name}.prefix" must be a string.`, 'argument')
  const lines = ranges.map((range: { readonly start?: unknown; readonly end?: unknown } | null) => ({
    start: Number(range?.start),
    end: Number(range?.end),
  }))
  return { uri: uriIn(uri, `${name}.uri`), level: validLevel, tokens: 0, ranges: lines, ...defined({ prefix }) }
}

function timeIn(args: ArgumentReader): number | undefined {
  const text = args.text('now', 40)
  if (text === undefined) return undefined
  const time = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time)) throw invalid('"now" must be a time, such as 2026-01-31T12:00:00Z.', 'argument')
  return time
}
