import { findAssigned, styleOf } from './assignments.ts'
import { findEncoded } from './encoded.ts'
import { findHeaderSecrets } from './headers.ts'
import { findKubernetesSecrets } from './kubernetes.ts'
import { findByLint } from './lint.ts'
import { findKeyBlocks } from './pem.ts'
import { findShapes } from './shapes.ts'
import type { Span } from './spans.ts'
import { findUrlSecrets } from './urls.ts'
import type { Style } from './values.ts'
import { viewsOf } from './views.ts'

/**
 * What looks for secrets, each by what it goes by: the structure around them (`blocks`, `urls`, `headers`, `kubernetes`),
 * the names that they have (`keys`), their own looks (`shapes`), what they are once decoded (`encoded`), and the rules of
 * secretlint (`lint`). `views` lets all of them look at the text with its escapes read and its lines joined as well.
 */
export const layers = ['blocks', 'urls', 'headers', 'kubernetes', 'keys', 'shapes', 'encoded', 'lint', 'views'] as const

export type Layer = (typeof layers)[number]

export interface DetectOptions {
  /** The path of the file, by whose name it is known how it is written. */
  readonly path: string
  /** What is left out: by tests, to show that each layer is needed. */
  readonly without?: readonly Layer[]
}

/** A secret in a text, and what found it. */
export interface Finding extends Span {
  readonly layer: Layer
}

/** Finds the secrets in a text. In no order; they may overlap. Time is in proportion to the length of the text. */
export async function findSecrets(text: string, { path, without = [] }: DetectOptions): Promise<readonly Finding[]> {
  const style = styleOf(path)
  const found: Finding[] = []
  const views = without.includes('views') ? viewsOf(text).slice(0, 1) : viewsOf(text)
  for (const view of views) {
    const add = (layer: Layer, spans: readonly Span[]) => {
      for (const { start, end, key } of spans)
        found.push({
          layer,
          start: view.startOf(start),
          end: view.endOf(end),
          ...(key === undefined ? {} : { key: view.startOf(key) }),
        })
    }
    for (const [layer, find] of finders(style, without)) add(layer, find(view.text))
    if (!without.includes('lint')) add('lint', await findByLint(view.text))
  }
  return found
}

function finders(style: Style, without: readonly Layer[]) {
  const plain: readonly (readonly [Layer, (text: string) => readonly Span[]])[] = [
    ['blocks', findKeyBlocks],
    ['urls', findUrlSecrets],
    ['headers', findHeaderSecrets],
    ['kubernetes', findKubernetesSecrets],
    ['keys', (text) => findAssigned(text, style)],
    ['shapes', findShapes],
  ]
  const kept = plain.filter(([layer]) => !without.includes(layer))
  // What was encoded is a text of its own, and says nothing of how it is written.
  const decoded = kept.filter(([layer]) => layer !== 'keys')
  const holdsSecret = (text: string) =>
    decoded.some(([, find]) => find(text).length > 0) || (!without.includes('keys') && holdsAssigned(text))
  const encoded = ['encoded', (text: string) => findEncoded(text, holdsSecret)] as const
  return without.includes('encoded') ? kept : [...kept, encoded]
}

/** Of what bytes decode to, only assignments at the beginning of lines count: anything else is chance. */
function holdsAssigned(text: string): boolean {
  return /["']?[A-Za-z][\w.-]{2,}["']?[ \t]*[=:]/.test(text) && findAssigned(text, 'prose').length > 0
}
