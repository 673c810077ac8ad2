import type { Difference } from '../../context/manifest.ts'
import type { Assembled, Explanation, OmittedItem } from '../../context/types.ts'
import { coloursFor } from '../terminal/colour.ts'
import { createColumns } from '../terminal/columns.ts'
import { count } from '../terminal/format.ts'
import { escapeText, readableUri } from '../terminal/text.ts'

/** Maximum number of omitted resources that are named. */
const mostOmitted = 20

/** Returns a table of the chosen resources with level and reason, and of the omitted ones. */
export function explained(
  { tokens, budget, encoding, items, omitted }: Assembled,
  histories: readonly string[],
  isTerminal: boolean,
): string {
  const { bold } = coloursFor(isTerminal)
  const number = (value: number) => value.toLocaleString('en')
  const head = `${count(items.length, 'resource')}, ${number(tokens)} of ${number(budget)} tokens (${encoding})`
  const layOut = createColumns([
    { side: 'right' },
    { side: 'left' },
    { side: 'right' },
    { side: 'left', most: 60 },
    { side: 'left' },
  ])
  const rows = items.map(({ uri, level, tokens: each, required, explanation, notes }) => [
    number(each),
    level,
    explanation.score.toFixed(3),
    shown(uri),
    [...(required ? ['required'] : []), because(explanation), ...notes].join('; '),
  ])
  const table = items.length === 0 ? '' : layOut([['tokens', 'level', 'score', 'resource', 'why'], ...rows])
  const history =
    histories.length === 0
      ? 'How often things were changed is not known here, and counts for nothing.'
      : `How often things were changed is from the history of ${histories.map(shown).join(', ')}.`
  return [bold(head), table.trimEnd(), ...left(omitted), history].filter((part) => part !== '').join('\n\n')
}

function because({ factors }: Explanation): string {
  return factors
    .filter(({ name, value }) => name === 'relevance' || Math.abs(value - 1) >= 0.005)
    .map(({ name, value, because: reason }) =>
      escapeText(name === 'relevance' ? reason : `${name} ×${value.toFixed(2)} (${reason})`),
    )
    .join(', ')
}

const reasons: Readonly<Record<OmittedItem['reason'], string>> = {
  budget: 'does not fit',
  count: 'there are enough',
  duplicate: 'says the same as another',
  unreadable: 'cannot be read',
}

function left(omitted: readonly OmittedItem[]): readonly string[] {
  if (omitted.length === 0) return []
  const layOut = createColumns([{ side: 'right' }, { side: 'left', most: 60 }, { side: 'left' }])
  const rows = omitted.slice(0, mostOmitted).map(({ uri, reason, of, explanation }) => {
    const other = of === undefined ? '' : `: ${shown(of)}`
    return [explanation.score.toFixed(3), shown(uri), `${reasons[reason]}${other}`]
  })
  const more = omitted.length - rows.length
  const end = more === 0 ? [] : [`… and ${more.toLocaleString('en')} more`]
  return [[`Left out: ${omitted.length.toLocaleString('en')}`, layOut(rows).trimEnd(), ...end].join('\n')]
}

/** Formats the changes since a manifest was written. */
export function formatDifferences(
  differences: readonly Difference[],
  before: string | undefined,
  after: string | undefined,
): string {
  if (before === after) return 'Nothing has changed: it is the same text.'
  if (differences.length === 0 && before === undefined) return 'Nothing in it has changed.'
  if (differences.length === 0) return 'What is in it has not changed; it is written in another way.'
  const lines = differences.map(({ uri, what, from, to }) => {
    const levels = from === to || from === undefined || to === undefined ? '' : ` (${from} → ${to})`
    return `  ${words[what]}  ${shown(uri)}${levels}`
  })
  return [`Changed since the manifest: ${differences.length}`, ...lines].join('\n')
}

const words: Readonly<Record<Difference['what'], string>> = {
  changed: 'changed',
  level: 'level  ',
  gone: 'gone   ',
  new: 'new    ',
}

function shown(uri: string): string {
  return escapeText(readableUri(uri))
}
