import { ResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import type { JsonObject, ToolAnswer, ToolBlock } from '../core/tool.ts'
import type { Resource, View } from '../core/view.ts'
import type { ContextCall } from './asked.ts'
import { assemble, measure } from './assemble.ts'
import { manifestFor } from './manifest.ts'
import { rankAll } from './rank.ts'
import { createContextReader, createExcluder, createUriMatcher } from './reader.ts'
import { formatIsoTime, toOutputBlocks } from './render.ts'
import { type AssembleOptions, type Candidate, defaultLimits, type Explanation, type OmittedItem } from './types.ts'

/**
 * Limits of one answer. `omitted`: number of omitted resources. `text`: length in UTF-16 units. `suggested`: number of resources that are
 * read for suggestions.
 */
const most = { omitted: 50, text: 8_000_000, suggested: 500 }

export async function answerContextCall(view: View, { what, options, limit }: ContextCall): Promise<ToolAnswer> {
  if (what === 'suggest') return suggested(view, options, limit)
  return what === 'measure' ? measured(view, options) : assembled(view, options)
}

async function assembled(view: View, options: AssembleOptions): Promise<ToolAnswer> {
  const result = await assemble(view, options)
  const { text, blocks, format, items, omitted, notes, freshness } = result
  if (text.length > most.text)
    throw new ResourceError('too-large', 'The context is too long to be answered. Ask for a smaller budget.', {
      limit: most.text,
    })
  const structured = {
    ...manifestFor(options, result),
    items: items.map(({ uri, resource, level, tokens: each, levels, required, explanation, notes: itemNotes }) => ({
      uri,
      ...resourceMetadata(resource),
      level,
      tokens: each,
      ...defined({ levels }),
      required,
      explanation: roundExplanation(explanation),
      notes: itemNotes,
    })),
    omitted: omitted.slice(0, most.omitted).map(omittedToJson),
    omittedTotal: omitted.length,
    notes,
    ...freshness,
    ...(format === 'mcp' ? {} : { text }),
  }
  if (blocks === undefined || blocks.length === 0) return { text: text === '' ? nothing : text, structured }
  const [note, ...rest] = toOutputBlocks(blocks)
  return {
    text: note !== undefined && 'text' in note ? note.text : '',
    structured,
    blocks: rest.flatMap((piece): readonly ToolBlock[] => {
      if ('resource' in piece) return [{ type: 'embedded', resource: piece.resource }]
      return 'link' in piece ? [{ type: 'link', resource: piece.link }] : []
    }),
  }
}

const nothing = 'Nothing that helps was found, or nothing of it fits into the budget.'

async function suggested(view: View, options: AssembleOptions, limit: number): Promise<ToolAnswer> {
  const limits = {
    ...defaultLimits,
    ...options.limits,
    read: Math.min(most.suggested, options.limits?.read ?? most.suggested),
  }
  const reader = createContextReader(view, limits, await createExcluder(view, options), options)
  const { candidates, notes, freshness } = await rankAll(view, options, limits, reader)
  const pinned = createUriMatcher((options.pins ?? []).map((pin) => (typeof pin === 'string' ? pin : pin.uri)))
  const all = candidates.filter(({ resource }) => !pinned(resource.uri))
  const firstCandidates = all.slice(0, limit)
  const lines = firstCandidates.map(({ resource: { uri, title, name }, explanation: { score } }) => {
    const label = (title ?? name).replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').slice(0, 120)
    return `- ${uri}  ${label}  (${score.toFixed(3)})`
  })
  return {
    text: [
      firstCandidates.length === 0 ? 'Nothing was found.' : lines.join('\n'),
      ...notes.map((note) => `(${note})`),
    ].join('\n'),
    structured: { suggestions: firstCandidates.map(suggestionOf), total: all.length, notes, ...freshness },
  }
}

function suggestionOf({ resource, explanation, required }: Candidate): JsonObject {
  return {
    uri: resource.uri,
    ...resourceMetadata(resource),
    required: required !== undefined,
    explanation: roundExplanation(explanation),
  }
}

async function measured(view: View, options: AssembleOptions): Promise<ToolAnswer> {
  const { budget, reserve = 0.03, encoding = 'o200k_base', format = 'markdown' } = options
  const { items, tokens, frame } = await measure(view, options)
  const usable = Math.floor(budget * (1 - reserve))
  const fits = tokens <= usable
  const lines = items.map(({ uri, level, tokens: each, levels, missing }) => {
    const all = Object.entries(levels).map(([name, count]) => `${name} ${count}`)
    return `- ${uri}  ${missing ? 'does not exist, or may not be seen' : `${level}: ${each} tokens (${all.join(', ')})`}`
  })
  return {
    text: [
      ...lines,
      `${tokens} tokens in all, which ${fits ? 'fit' : 'do not fit'} into the ${usable} of the budget without its reserve.`,
    ].join('\n'),
    structured: {
      tokens,
      frame,
      budget,
      usable,
      fits,
      encoding,
      format,
      items: items.map(({ uri, resource, level, tokens: each, levels, missing, notes }) =>
        missing
          ? { uri, missing, tokens: 0, level, notes }
          : { uri, ...resourceMetadata(resource), missing, level, tokens: each, levels, notes },
      ),
      notes: [],
    },
  }
}

function resourceMetadata({ name, title, mimeType, size, modified }: Resource): JsonObject {
  const at = formatIsoTime(modified)
  return {
    name,
    ...defined({ title, mimeType, size, lastModified: at }),
  }
}

function omittedToJson({ uri, reason, of, tokens, explanation }: OmittedItem): JsonObject {
  return {
    uri,
    reason,
    ...defined({ of }),
    ...(tokens === undefined || !Number.isFinite(tokens) ? {} : { tokens }),
    explanation: roundExplanation(explanation),
  }
}

function roundExplanation({ score, factors }: Explanation): JsonObject {
  const round = (value: number) => Math.round(value * 10_000) / 10_000
  return { score: round(score), factors: factors.map((factor) => ({ ...factor, value: round(factor.value) })) }
}
