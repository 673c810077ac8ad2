import { findAssigned, styleOf } from './assignments.ts'
import { findAttributeSecrets } from './attributes.ts'
import { findEncoded } from './encoded.ts'
import { findHeaderSecrets } from './headers.ts'
import { findJwkSecrets } from './jwk.ts'
import { findKubernetesSecrets } from './kubernetes.ts'
import { findKeyBlocks } from './pem.ts'
import { findShapes } from './shapes.ts'
import { mergeSpans, replaceSpans, type Span } from './spans.ts'
import { findTableSecrets } from './tables.ts'
import { findUrlSecrets } from './urls.ts'
import type { Style } from './values.ts'
import { type View, viewsOf } from './views.ts'

/**
 * Detection layers, by the evidence they use: the structure around a secret (`blocks`, `urls`, `headers`, `kubernetes`), its
 * name (`keys`), its form (`shapes`), its decoded form (`encoded`), and the rules of secretlint (`lint`). `views` also gives
 * all of them the text with its escapes decoded and its lines joined; `vaults` withholds files by name; `bytes` scans content
 * that is not UTF-8 text.
 */
export const layers = [
  'blocks',
  'urls',
  'headers',
  'kubernetes',
  'keys',
  'shapes',
  'encoded',
  'lint',
  'views',
  'vaults',
  'bytes',
] as const

export type Layer = (typeof layers)[number]

export interface FindOptions {
  /** The path of the file, by whose name it is known how it is written. */
  readonly path: string
  /** Layers that are left out: tests use it to show that each layer is needed. */
  readonly without?: readonly Layer[]
  /** First line of the file, if the text does not begin with it: it may name the columns of a table. */
  readonly head?: string
}

/** A secret in a text, and what found it. */
export interface Finding extends Span {
  readonly layer: Layer
}

/**
 * A name, a path or an option that nothing finds a secret in: every shape and every encoding has at least 16 characters, and all other
 * secrets stand beside a space, a colon or another sign. Most values of an environment are such, and a start waits for them.
 */
const shortWord = /^[A-Za-z0-9_./~-]{0,15}$/

/**
 * Finds the secrets in a text with everything but secretlint, in no order; they may overlap. Time is in proportion to the
 * length of the text.
 */
export function findOwn(text: string, options: FindOptions): readonly Finding[] {
  if (shortWord.test(text)) return []
  return viewsFor(text, options).flatMap((view) =>
    finders(options).flatMap(([layer, find]) => find(view.text).map((span) => inSource(view, layer, span))),
  )
}

/** The ways to look at a text, the text itself first. */
export function viewsFor(text: string, { without = [] }: FindOptions): readonly View[] {
  return without.includes('views') ? viewsOf(text).slice(0, 1) : viewsOf(text)
}

/** Converts a span in a view to a finding in the source text. */
export function inSource(view: View, layer: Layer, { start, end, key }: Span): Finding {
  return {
    layer,
    start: view.startOf(start),
    end: view.endOf(end),
    ...(key === undefined ? {} : { key: view.startOf(key) }),
  }
}

/** A short text, such as a title, without its secrets. */
export function redactPhrase(text: string): string {
  return replaceSpans(text, mergeSpans(findOwn(text, { path: 'phrase.txt' })))
}

type Finder = readonly [Layer, (text: string) => readonly Span[]]

function finders({ path, without = [], head }: FindOptions): readonly Finder[] {
  const style: Style = styleOf(path)
  const plain: readonly Finder[] = [
    ['blocks', findKeyBlocks],
    ['urls', findUrlSecrets],
    ['headers', findHeaderSecrets],
    ['kubernetes', findKubernetesSecrets],
    [
      'keys',
      (text) => [
        ...findAssigned(text, style),
        ...findAttributeSecrets(text, style),
        ...findJwkSecrets(text),
        ...(style === 'code' ? [] : findTableSecrets(text, path, head)),
      ],
    ],
    ['shapes', findShapes],
  ]
  const kept = plain.filter(([layer]) => !without.includes(layer))
  if (without.includes('encoded')) return kept
  // Decoded text is separate: the format of the file around it does not apply.
  const inside = kept.map(([layer, find]): Finder => [layer, layer === 'keys' ? findDecoded : find])
  return [
    ...kept,
    ['encoded', (text) => findEncoded(text, (decoded) => inside.some(([, find]) => find(decoded).length > 0))],
  ]
}

/** Of what bytes decode to, only an assignment that begins a line counts, and a JSON Web Key: anything else may be chance. */
function findDecoded(text: string): readonly Span[] {
  const jwk = text.includes('kty') ? findJwkSecrets(text) : []
  if (jwk.length > 0) return jwk
  return /^[ \t"'{]*[A-Za-z][\w.-]{2,}["']?[ \t]*[=:]/m.test(text) ? findAssigned(text, 'prose') : []
}
