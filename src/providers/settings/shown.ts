import { mergeSpans, type Span } from '../../core/kit/sorted.ts'
import { createScrubber, redactedMark } from '../../core/scrub.ts'
import type { DetectionLayer } from '../../secrets/find.ts'
import { findSecrets } from '../../secrets/window.ts'
import {
  applyEdits,
  editJson,
  editScalar,
  type HiddenValues,
  replaceScalar,
  searchableValues,
  spanFrom,
  spansOutside,
  spansOverlapping,
  type TextEdit,
} from './hiding.ts'
import type { Scalar, SettingsNode, SettingsTree } from './tree.ts'

interface SettingsFile {
  readonly text: string
  readonly path: string
  readonly tree: SettingsTree
  readonly denied: HiddenValues
  readonly without: readonly DetectionLayer[]
}

export async function showJson(node: SettingsNode, source: SettingsFile): Promise<string> {
  const normal = writeJson(node, source.denied)
  const edits = editJson(normal.text, normal.words, await findInJson(normal, source))
  return scrubDenied(applyEdits(normal.text, edits), source)
}

/** Returns the file with its comments, but without its hidden values and the secrets that the detectors find. */
export async function showSource(source: SettingsFile): Promise<string> {
  const { text, path, tree, denied, without } = source
  const scalars = scalarsOf(tree)
  const inText = (await findSecrets(text, { path, without })).filter((span) => !isOfName(span, scalars))
  const { spans, whole } = await findInValues(source)
  const allSpans = mergeSpans([...inText, ...spans])
  const edits: TextEdit[] = spansOutside(
    [...allSpans, ...(tree.unknown ?? [])].sort((a, b) => a.start - b.start),
    scalars,
  ).map((span) => ({ ...span, text: redactedMark }))
  for (const scalar of scalars) {
    const edit = denied.has(scalar) || whole.has(scalar) ? replaceScalar(scalar, text) : undefined
    if (edit !== undefined) edits.push(edit)
    else {
      const own = spansOverlapping(allSpans, scalar)
      if (own.length > 0) edits.push(...editScalar(scalar, text, own))
    }
  }
  return scrubDenied(applyEdits(text, edits), source)
}

/** Removes denied values that are repeated in comments or in shown values, if they are long and unusual enough ({@link searchableValues}). */
function scrubDenied(text: string, { denied }: SettingsFile): string {
  return createScrubber(searchableValues(denied)).scrub(text)
}

/** Returns the values in source order. */
function scalarsOf({ root, commented = [] }: SettingsTree): readonly Scalar[] {
  const nodes = new Set<SettingsNode>()
  const visit = (node: SettingsNode): void => {
    if (nodes.has(node)) return
    nodes.add(node)
    if (node.kind === 'list') for (const item of node.items) visit(item)
    if (node.kind === 'table') for (const { value } of node.entries) visit(value)
  }
  visit(root)
  for (const { value } of commented) visit(value)
  return [...nodes].filter((node) => node.kind === 'scalar').sort((a, b) => a.start - b.start)
}

/**
 * Whether a detector found a span because of the name before it. The names in the tree are judged already. The tree
 * has no names within values (`Server=db;Password=…`) or comments.
 */
function isOfName({ start, end, key }: Span, scalars: readonly Scalar[]): boolean {
  if (key === undefined) return false
  const scalar = spanFrom(scalars, start)
  return scalar !== undefined && scalar.start < end && key < scalar.start
}

/** Leaves out the spans found only for the name of a value: names are judged already. */
async function findInJson({ text, leaves }: Normal, { without }: SettingsFile): Promise<readonly Span[]> {
  const secrets = await findSecrets(text, { path: 'settings.json', without })
  return mergeSpans(
    secrets.filter(({ key }) => {
      const leaf = key === undefined ? undefined : spanFrom(leaves, key)
      return key === undefined || (leaf !== undefined && leaf.start <= key)
    }),
  )
}

/** Returns the findings in the decoded values: as spans of the source when the text occurs there too, else as whole values. */
async function findInValues(source: SettingsFile) {
  const normal = writeJson(source.tree.root, source.denied)
  const inLeaves = new Map<Scalar, string[]>()
  for (const { start, end } of await findInJson(normal, source)) {
    let leaf = spanFrom(normal.leaves, start + 1)
    for (; leaf !== undefined && leaf.start < end; leaf = spanFrom(normal.leaves, leaf.end + 1)) {
      const part = normal.text.slice(Math.max(start, leaf.start), Math.min(end, leaf.end))
      const parts = inLeaves.get(leaf.scalar)
      if (parts === undefined) inLeaves.set(leaf.scalar, [part])
      else parts.push(part)
    }
  }
  const spans: Span[] = []
  const whole = new Set<Scalar>()
  for (const [scalar, parts] of inLeaves) {
    const own = partsInSource(scalar, parts, source.text)
    if (own === undefined) whole.add(scalar)
    else spans.push(...own)
  }
  return { spans, whole }
}

/** Returns the spans of parts of a decoded value in the source; `undefined` when the source writes one of them differently. */
function partsInSource({ start, end }: Scalar, parts: readonly string[], text: string): readonly Span[] | undefined {
  const source = text.slice(start, end)
  const spans: Span[] = []
  for (const part of new Set(parts)) {
    const hits: Span[] = []
    for (let at = source.indexOf(part); at !== -1; at = source.indexOf(part, at + part.length))
      hits.push({ start: start + at, end: start + at + part.length })
    if (hits.length < parts.filter((other) => other === part).length) return undefined
    spans.push(...hits)
  }
  return spans
}

interface Leaf {
  readonly scalar: Scalar
  readonly start: number
  readonly end: number
}

interface Normal {
  readonly text: string
  readonly leaves: readonly Leaf[]
  /** Spans of names and shown values, without their quotes, in order. */
  readonly words: readonly Span[]
}

/** Writes a node as JSON, with the mark for hidden values. Of a repeated key, only the last value is written. */
function writeJson(root: SettingsNode, denied: HiddenValues): Normal {
  const pieces: string[] = []
  const leaves: Leaf[] = []
  const words: Span[] = []
  let length = 0
  const putText = (text: string) => {
    pieces.push(text)
    length += text.length
  }

  const writeScalar = (scalar: Scalar) => {
    if (denied.has(scalar)) {
      putText(JSON.stringify(redactedMark))
      return
    }
    const quotes = scalar.json.startsWith('"') ? 1 : 0
    const span = { start: length + quotes, end: length + scalar.json.length - quotes }
    leaves.push({ scalar, ...span })
    words.push(span)
    putText(scalar.json)
  }

  const write = (node: SettingsNode, indent: string): void => {
    if (node.kind === 'scalar') writeScalar(node)
    else if (node.kind === 'list')
      writeAll(
        '[',
        node.items.map((value) => [undefined, value] as const),
        ']',
        indent,
      )
    else {
      // Uses a map, because `__proto__` is a name like any other.
      const members = [...new Map(node.entries.map(({ key, value }) => [key, value]))]
      writeAll('{', members, '}', indent)
    }
  }

  const writeName = (name: string) => {
    const json = JSON.stringify(name)
    words.push({ start: length + 1, end: length + json.length - 1 })
    putText(`${json}: `)
  }

  const writeAll = (
    open: string,
    members: readonly (readonly [name: string | undefined, value: SettingsNode])[],
    close: string,
    indent: string,
  ) => {
    putText(open)
    for (const [i, [name, value]] of members.entries()) {
      putText(`${i === 0 ? '' : ','}\n${indent}  `)
      if (name !== undefined) writeName(name)
      write(value, `${indent}  `)
    }
    putText(members.length === 0 ? close : `\n${indent}${close}`)
  }

  write(root, '')
  putText('\n')
  return { text: pieces.join(''), leaves, words }
}
