import { defined } from '../core/kit/object.ts'
import type { View } from '../core/view.ts'
import { parseQuery } from '../text/analyser.ts'
import { assemble } from './assemble.ts'
import type { ReadingCache } from './memory.ts'
import type { AssembledItem, ContextLimits } from './types.ts'

/** Default budget of a brief in tokens, and default score below which the brief is empty. */
export const briefDefaults = { budget: 1500, minScore: 0.5 }

export interface BriefOptions {
  readonly prompt: string
  /** In tokens. Default {@link briefDefaults}. */
  readonly budget?: number
  /** From 0 to 1. Default {@link briefDefaults}. */
  readonly minScore?: number
  readonly now: number
  readonly memory?: ReadingCache
  readonly signal?: AbortSignal
}

/** A context that is added to a prompt without being requested. */
export interface Brief {
  /** The context. Empty if `silence` says why. */
  readonly text: string
  readonly tokens: number
  /** The share of the words of the prompt, at most eight, that the best section has, from 0 to 1. Words of conversation do not count. */
  readonly score: number
  readonly items: readonly AssembledItem[]
  /** Why the text is empty. */
  readonly silence?: string
}

/** The brief when the configuration has `"context": { "hook": false }`. */
export const disabledBrief: Brief = {
  ...{ text: '', tokens: 0, score: 0, items: [] },
  silence: 'the configuration has turned hooks off',
}

/** Limits that keep a brief fast: only the search finds candidates, and few of its hits are read. */
const limits: Partial<ContextLimits> = { listed: 0, searched: 16, read: 16, detailed: 12, items: 6 }
/** Words of conversation, which say nothing about the topic. */
const chat: ReadonlySet<string> = new Set(
  (
    'a about after again all also an and any are as at back be because before been but by can could did do does done for from get ' +
    'give go good great had has have hello help here hi how i if in into is it its just keep last let lets like look looks make ' +
    'makes many maybe me more much my need next nice no not now of ok okay on one only or other our out over please proceed right ' +
    'same see should show so some something still sure tell than thank thanks that the them then there these they thing things ' +
    'think this those to too try up us use very want was way we well were what when where which who why will with would yes yet ' +
    'you your'
  ).split(' '),
)
/**
 * `least`: minimum number of words of a prompt that can ask for something. `most`: maximum number of words that are counted towards a
 * score, because no text has all words of a long prompt.
 */
const words = { least: 2, most: 8 }

/** Assembles a small context for a prompt. The result is empty if no text fits the prompt. */
export async function briefFor(view: View, options: BriefOptions): Promise<Brief> {
  const { prompt, budget = briefDefaults.budget, minScore = briefDefaults.minScore, now, memory, signal } = options
  const silent = (silence: string, score = 0): Brief => ({ text: '', tokens: 0, score, items: [], silence })
  if (/^\s*(?:\/[\w:-]+(?:\s|$)|[!#])/.test(prompt)) return silent('the prompt is a command of the host')
  // Quotes in a prompt quote something; in a query they would ask for these words in this order.
  const query = prompt
    .replace(/["“”„«»]/g, ' ')
    .replace(/(?<![\p{L}\p{N}_./-])[a-z']+(?![\p{L}\p{N}_/-])/giu, (word) =>
      chat.has(word.toLowerCase().replace(/'.*/s, '')) ? '' : word,
    )
  const terms = parseQuery(query).terms.filter(
    ({ light, prefix, loose, joined }) => !(light || prefix || loose || joined),
  ).length
  if (terms < words.least) return silent('the prompt has too few words')
  const { text, tokens, items } = await assemble(view, {
    query,
    budget,
    now,
    limits,
    ...defined({ memory, signal }),
  })
  if (items.length === 0) return silent('nothing was found')
  const mostMatches = Math.max(...items.map((item) => item.matched))
  const score = Math.min(1, mostMatches / Math.min(terms, words.most))
  if (mostMatches < words.least || score < minScore)
    return silent(`the score ${score.toFixed(2)} is below ${minScore}`, score)
  return { text, tokens, score, items }
}
