import { fold } from '../../../core/kit/matching.ts'

/** An action or a resource of the palette. */
export interface Option {
  readonly id: string
  /** The text that is matched and shown first. */
  readonly label: string
  /** Shown in grey after the label, and also matched: the title of a file. */
  readonly aside?: string
  /** Shown after it, and also matched: an address, a key. */
  readonly detail?: string
  readonly kind: 'action' | 'mount' | 'template' | 'prompt' | 'resource'
  readonly run: () => void
}

/**
 * How well a text matches a query, both folded: higher is better, `undefined` not at all. A contiguous match comes before spread
 * letters, the beginning of a word before its middle, short texts before long ones.
 */
export function fitOf(query: string, text: string): number | undefined {
  if (query === '') return 0
  const at = text.indexOf(query)
  if (at !== -1) {
    const begins = at === 0 || /[\s/._\-:[\]()]/.test(text[at - 1] ?? '')
    return 1000 + (begins ? 200 : 0) + (at === 0 ? 100 : 0) - Math.min(90, text.length / 4)
  }
  return spreadFit(query, text)
}

function spreadFit(query: string, text: string): number | undefined {
  let from = 0
  let gaps = 0
  let first = -1
  for (const character of query) {
    if (character === ' ') continue
    const at = first === -1 ? beginningOf(character, text) : text.indexOf(character, from)
    if (at === -1) return undefined
    if (first === -1) first = at
    else gaps += at - from
    from = at + character.length
  }
  return gaps > 3 * query.length ? undefined : 500 - 10 * gaps - Math.min(90, text.length / 4)
}

/** Returns the position of a word that begins with this character. */
function beginningOf(character: string, text: string): number {
  let at = text.indexOf(character)
  while (at > 0 && !/[\s/._\-:]/.test(text[at - 1] ?? '')) at = text.indexOf(character, at + 1)
  return at
}

const kinds = ['action', 'mount', 'template', 'prompt', 'resource'] as const

/** The options that match, best first; with equal scores, actions before resources. */
export function ranked(options: readonly Option[], query: string, most = 50): readonly Option[] {
  const needle = fold(query.trim())
  const fitting = options.flatMap((option, at) => {
    const label = fitOf(needle, fold(option.label))
    const detail = option.detail === undefined ? undefined : fitOf(needle, fold(option.detail))
    const aside = option.aside === undefined ? undefined : fitOf(needle, fold(option.aside))
    const others = Math.max(aside ?? Number.NEGATIVE_INFINITY, detail ?? Number.NEGATIVE_INFINITY)
    const fit = Math.max(label ?? Number.NEGATIVE_INFINITY, others - 50)
    return Number.isFinite(fit) ? [{ option, fit, at }] : []
  })
  return fitting
    .sort((a, b) => b.fit - a.fit || kinds.indexOf(a.option.kind) - kinds.indexOf(b.option.kind) || a.at - b.at)
    .slice(0, most)
    .map(({ option }) => option)
}
