import { compileGlobs } from '../../core/glob.ts'
import { jsonIn } from '../../core/kit/object.ts'
import { firstIndex, type Span } from '../../core/kit/sorted.ts'
import { redactedMark, replaceSpans } from '../../core/scrub.ts'
import { redactPhrase } from '../../secrets/find.ts'
import { looksLikeRandomToken, type NameStrength, secretNameStrength } from '../../secrets/keys.ts'
import { isHarmless } from '../../secrets/references.ts'
import { escapeStep, type Scalar, type SettingsNode, type SettingsTree, type Table, type TableEntry } from './tree.ts'

export interface HidingPolicy {
  /** `safe`: shows values with neither a name nor a form that looks secret. `allowed`: shows only those that `allow` names. */
  readonly show: 'safe' | 'allowed'
  /**
   * Globs over pointers (`/db/*`) or, without a slash, over names at any depth (`*_HOST`). A value whose name sounds secret is
   * shown only when a pattern without wildcards names it.
   */
  readonly allow: readonly string[]
}

/** The hidden values of a file. Aliases of a value are the same element. */
export type HiddenValues = ReadonlySet<Scalar>

const wildcard = /[*?[\]{}\\]/

/** Returns the values that are hidden for their names, or because they look random. Detectors search the others for secrets. */
export function hiddenValues({ root, commented = [] }: SettingsTree, { show, allow }: HidingPolicy): HiddenValues {
  const test = compileGlobs(allow.filter((pattern) => !wildcard.test(pattern)))
  const allowGlobs = compileGlobs(allow)
  const denied = new Set<Scalar>()

  const judgeScalar = (scalar: Scalar, path: string, secret: boolean): void => {
    if (path !== '' && test(path)) return
    if (secret) denied.add(scalar)
    else if (path !== '' && allowGlobs(path)) return
    else if (show === 'allowed' || isOpaque(scalar.text)) denied.add(scalar)
  }

  /** @param secret Whether a name above hides everything below it. */
  const visit = (node: SettingsNode, path: string, secret: boolean): void => {
    if (node.kind === 'scalar') judgeScalar(node, path, secret)
    else if (node.kind === 'table') for (const entry of node.entries) visitEntry(entry, node, path, secret)
    else
      for (const [i, item] of node.items.entries())
        visit(item, join(path, String(i)), secret || isValueOfOption(item, node.items[i - 1]))
  }

  const visitEntry = ({ key, value }: TableEntry, table: Table, path: string, secret: boolean): void => {
    const at = join(path, escapeStep(key))
    const kind = secretNameStrength(key) ?? kindOfKeyIn(path, key)
    // A weak name affects only its own value, or a list of values.
    const own = kind === 'strong' || (kind === 'weak' && value.kind !== 'table')
    visit(value, at, secret || own || isValueOfSecret(key, table) || isKubernetesSecret(key, table))
  }

  visit(root, '', false)
  for (const { key, value } of commented) visit(value, escapeStep(key), secretNameStrength(key) !== undefined)
  return denied
}

const join = (path: string, step: string) => (path === '' ? step : `${path}/${step}`)

/** Whether a value looks random, even without the parts that the detectors know, such as the password in a URL. */
function isOpaque(text: string): boolean {
  return looksLikeRandomToken(text) && looksLikeRandomToken(redactPhrase(text))
}

/** Whether a `key` is secret depends on the name above it: `api: { key: … }`. */
function kindOfKeyIn(path: string, key: string): NameStrength {
  return /keys?$/i.test(key) ? secretNameStrength(`${path.slice(path.lastIndexOf('/') + 1)}_${key}`) : undefined
}

const nameKeys = /^(?:name|key|id|variable|field)$/i
const valueKeys = /^(?:value|val|default|content)$/i

/** Whether a value belongs to a name beside it: `{ name: DB_PASSWORD, value: hunter2 }`. */
function isValueOfSecret(key: string, { entries }: Table): boolean {
  if (!valueKeys.test(key)) return false
  return entries.some(
    (entry) =>
      nameKeys.test(entry.key) && entry.value.kind === 'scalar' && secretNameStrength(entry.value.text) !== undefined,
  )
}

/** Whether a value belongs to the option before it: `["--password", "…"]`. */
function isValueOfOption(item: SettingsNode, before: SettingsNode | undefined): boolean {
  if (before?.kind !== 'scalar' || item.kind !== 'scalar' || item.text.startsWith('-')) return false
  const name = /^--?([A-Za-z][\w-]{1,40})$/.exec(before.text)?.[1]
  return name !== undefined && secretNameStrength(name) !== undefined
}

/** Whether a key holds the data of a Kubernetes Secret. */
function isKubernetesSecret(key: string, { entries }: Table): boolean {
  if (key !== 'data' && key !== 'stringData') return false
  return entries.some((entry) => entry.key === 'kind' && entry.value.kind === 'scalar' && entry.value.text === 'Secret')
}

/** Returns the hidden values that are long and unusual enough to be searched in the rest of the file. */
export function searchableValues(denied: HiddenValues): readonly string[] {
  return [...denied]
    .map(({ text }) => text)
    .filter(
      (text) =>
        text.length >= 8 &&
        !isHarmless(text) &&
        (looksLikeRandomToken(text) || (/\d/.test(text) && /[A-Za-z]/.test(text))),
    )
}

export interface TextEdit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Returns the first span that ends at or after a position. The spans are sorted, and do not overlap. */
export function spanFrom<S extends { readonly end: number }>(spans: readonly S[], offset: number): S | undefined {
  return spans[firstIndex(0, spans.length, (index) => (spans[index]?.end ?? 0) >= offset)]
}

/** Returns the edit that replaces a whole value, so that the file can still be read; `undefined` if there is nothing to replace. */
export function replaceScalar({ start, end, writing, json }: Scalar, text: string): TextEdit | undefined {
  // A key without a value has no text to replace.
  if (writing === 'plain' && json === 'null') return undefined
  if (writing === 'inside' || writing === 'plain') return { start, end, text: redactedMark }
  const mark = JSON.stringify(redactedMark)
  if (writing === 'block') return { start, end, text: text.slice(start, end).endsWith('\n') ? `${mark}\n` : mark }
  return { start, end, text: start === end && /\S/.test(text[start - 1] ?? '') ? ` ${mark}` : mark }
}

/**
 * Returns the edits that replace parts of a value by `[redacted]`. An unquoted value that would then parse as a list gets quotes. A block
 * scalar is replaced as a whole if a part begins at its start.
 */
export function editScalar(scalar: Scalar, text: string, parts: readonly Span[]): readonly TextEdit[] {
  const { start, end, writing } = scalar
  const own = parts.map((part) => clip(part, scalar))
  if (writing === 'block' && own.some((part) => part.start <= start))
    return [replaceScalar(scalar, text)].filter((edit) => edit !== undefined)
  if (writing !== 'quoted') return own.map((part) => ({ ...part, text: redactedMark }))
  return [{ start, end, text: JSON.stringify(withoutParts(text, scalar, own)) }]
}

/** Returns the edits that remove parts from the names and values (`words`) of a JSON text, so that it stays valid JSON. */
export function editJson(text: string, words: readonly Span[], parts: readonly Span[]): readonly TextEdit[] {
  const mark = JSON.stringify(redactedMark)
  return words.flatMap((word) => {
    const own = spansOverlapping(parts, word)
    if (own.length === 0) return []
    if (text[word.start - 1] !== '"') return [{ ...word, text: mark }]
    const rest = `"${withoutParts(text, word, own)}"`
    // A text that lost half of an escape is not JSON, and is replaced as a whole.
    return [{ start: word.start - 1, end: word.end + 1, text: jsonIn(rest) === undefined ? mark : rest }]
  })
}

function withoutParts(text: string, of: Span, parts: readonly Span[]): string {
  const own = parts.map((part) => clip(part, of))
  const relative = own.map(({ start, end }) => ({ start: start - of.start, end: end - of.start }))
  return replaceSpans(text.slice(of.start, of.end), relative)
}

const clip = ({ start, end }: Span, of: Span): Span => ({
  start: Math.max(start, of.start),
  end: Math.min(end, of.end),
})

/** Returns the parts of spans that are outside of values. Both lists are sorted. */
export function spansOutside(spans: readonly Span[], scalars: readonly Scalar[]): readonly Span[] {
  return spans.flatMap((span) => {
    const pieces: Span[] = []
    let from = span.start
    for (
      let scalar = spanFrom(scalars, from);
      scalar !== undefined && scalar.start < span.end;
      scalar = spanFrom(scalars, scalar.end + 1)
    ) {
      if (scalar.start > from) pieces.push({ start: from, end: scalar.start })
      from = Math.max(from, scalar.end)
    }
    if (from < span.end) pieces.push({ start: from, end: span.end })
    return pieces
  })
}

/** Returns the spans that overlap a value. The spans are sorted. */
export function spansOverlapping(spans: readonly Span[], { start, end }: Span): readonly Span[] {
  const hits: Span[] = []
  for (
    let span = spanFrom(spans, start + 1);
    span !== undefined && span.start < end;
    span = spanFrom(spans, span.end + 1)
  )
    hits.push(span)
  return hits
}

/** Applies edits to a text. An edit that overlaps an earlier one is left out. */
export function applyEdits(text: string, edits: readonly TextEdit[]): string {
  const pieces: string[] = []
  let from = 0
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    if (edit.start < from) continue
    pieces.push(text.slice(from, edit.start), edit.text)
    from = edit.end
  }
  return pieces.join('') + text.slice(from)
}
