import { lazyPattern } from '../core/kit/matching.ts'
import type { Span } from '../core/kit/sorted.ts'
import { type NameStrength, secretNameStrength } from './keys.ts'
import { isHarmless } from './references.ts'
import { looksLikePassword } from './values.ts'

/** A quick check for a text that may hold the name of a secret. It has the flag `g`: set `lastIndex` to the start of the search. */
export const secretNamePattern =
  /pass|pwd|pw\b|secret|token|key|cred|auth|pin|cvv|cookie|session|jwt|kennwort|senha|contra|[^\0-\x7f]/gi

interface SecretColumn {
  readonly at: number
  readonly kind: Exclude<NameStrength, undefined>
  readonly counts: boolean
}

/** The columns of a table that hold secrets, and in a table of settings the values beside names of secrets. */
export interface SecretColumns {
  readonly secret: readonly SecretColumn[]
  /** The positions of a name and its value in a row of settings. */
  readonly pair: { readonly name: number; readonly value: number; readonly isValue: boolean } | undefined
  /** Whether a name is a phrase, as in tables of documentation: a sentence in a cell is not a secret. */
  readonly isProse?: boolean
  /** Number of cells in the row of names. */
  readonly count: number
}

/**
 * How certain it is that a text is a table. `file`: its name says so. `marked`: it has the rules or tags of a table. `guessed`: some lines
 * have the same number of delimiters.
 */
export type TableCertainty = 'file' | 'marked' | 'guessed'

const nameOfNames =
  /^(?:(?:env(?:ironment)?[ _])?(?:names?|keys?|settings?|variables?|vars?|parameters?|param|property|properties|options?|fields?|items?))$/i
const nameOfValues = /^(?:values?|val|content)$/i
const nameOfDefaults = /^(?:defaults?(?:[ _]values?)?|examples?)$/i

const columnName = lazyPattern('^[\\p{L}_][^(){}<>=:[\\]`]{0,63}$', 'u')

/** A cell without the marks of Markdown and HTML around it, the address of a link, and a remark in brackets. */
function bareCell(text: string): string {
  return text
    .replace(/\[([^[\]]*)\]\([^()\s]*\)|<\/?[a-z][^<>]{0,200}>/gi, '$1')
    .replace(/^[\s\ufeff#*_`"']+|[\s*_`"':]+$/g, '')
    .replace(/\s\[[^[\]]*\]$/, '')
}

/** Returns the meaning of a name in a table with a column of users: there, `pass` is a password, not a number of passed tests. */
const passwordName = (name: string) => (/^(?:pass|pw)$/i.test(name) ? 'password' : name.slice(0, 256))

/** Finds the columns with secrets by the names in the first row; `undefined` if the row does not name columns. */
export function findSecretColumns(row: readonly string[], certainty: TableCertainty): SecretColumns | undefined {
  const names = row.map(bareCell)
  if (certainty === 'guessed' && !areNames(names)) return undefined
  const hasUser = names.some((name) => /^(?:user(?:[ _-]?(?:name|id))?|login|e-?mail|account)$/i.test(name))
  const secret = names.flatMap((name, at): SecretColumn[] => {
    const kind =
      certainty === 'file' || isShortName(name)
        ? secretNameStrength(hasUser ? passwordName(name) : name.slice(0, 256))
        : undefined
    if (kind === undefined || (kind === 'weak' && certainty !== 'file')) return []
    return [{ at, kind, counts: /tokens?$/i.test(name) }]
  })
  const name = names.findIndex((one) => nameOfNames.test(one))
  const value = names.findIndex((one) => nameOfValues.test(one))
  const fallback = value === -1 ? names.findIndex((one) => nameOfDefaults.test(one)) : value
  const pair =
    name === -1 || fallback <= name
      ? undefined
      : { name, value: fallback, isValue: certainty === 'file' && value !== -1 }
  return {
    secret,
    pair,
    isProse: certainty !== 'file' && names.some((one) => ofSentences.test(one)),
    count: row.length,
  }
}

const areNames = (names: readonly string[]) =>
  names.filter((name) => name !== '').length > 1 && names.every((name) => name === '' || columnName().test(name))

/** Words that occur in sentences, but not in names of columns. */
const ofSentences =
  /(?<![\p{L}-])(?:a|an|the|in|of|for|to|is|are|with|without|and|or|your|how|where|which|what|not?|nothing|by|from|it)(?![\p{L}-])/iu

const isShortName = (name: string) =>
  /^[A-Za-z_$@\u0080-\uffff][^`{}<>=]{0,63}$/.test(name) && name.split(' ').length <= 4 && !ofSentences.test(name)

export type CellRow = readonly Span[]

export function findSecretCells(
  text: string,
  row: CellRow,
  columns: SecretColumns | undefined,
  certainty: TableCertainty,
): readonly Span[] {
  const spans = (columns?.secret ?? []).flatMap(({ at, kind, counts }) => {
    const isAny = (kind: NameStrength, cell: string) =>
      kind === 'strong' &&
      certainty !== 'guessed' &&
      !(columns?.isProse && /\s\S+\s/.test(cell) && ofSentences.test(cell))
    // A delimiter within a cell splits it, which moves the cells after it.
    const last = at + Math.max(0, row.length - (columns?.count ?? row.length))
    return row
      .slice(at, last + 1)
      .flatMap((cell) => findSecretInCell(text, cell, isAny(kind, text.slice(cell.start, cell.end)), counts))
  })
  const pair = columns?.pair ?? (row.length === 2 ? { name: 0, value: 1, isValue: false } : undefined)
  const [name, value] = pair === undefined ? [] : [row[pair.name], row[pair.value]]
  if (pair === undefined || name === undefined || value === undefined || certainty === 'guessed') return spans
  return isNameOfSecret(text.slice(name.start, name.end))
    ? [...spans, ...findSecretInCell(text, value, pair.isValue)]
    : spans
}

/** Whether a cell is the name of a secret, not a sentence about one. */
export function isNameOfSecret(cell: string): boolean {
  const name = bareCell(cell)
  return isShortName(name) && secretNameStrength(name) === 'strong'
}

/**
 * Returns the secret in a cell, without the marks around it.
 *
 * @param isAny Whether the text need not look like a password.
 * @param counts Whether a number is no secret: it may be a number of tokens.
 */
export function findSecretInCell(text: string, { start, end }: Span, isAny: boolean, counts = false): readonly Span[] {
  const cell = text.slice(start, end)
  const head = /^[\s*_`]*/.exec(cell)?.[0].length ?? 0
  const value = cell.slice(head).replace(/[\s*_`]+$/, '')
  if (isHarmless(value) || /^[:\s—–✓✔✗✘✅❌·•|=+-]*$/u.test(value)) return []
  if (counts && /^[\d,._]+[kKM]?$/.test(value)) return []
  if (!isAny && (!looksLikePassword(value) || /\s/.test(value) || isOnlyName(value))) return []
  return [{ start: start + head, end: start + head + value.length }]
}

const isOnlyName = (value: string) => /^[A-Za-z_ .:-]+$/.test(value) && secretNameStrength(value) !== undefined

export function cellTexts(text: string, row: CellRow): readonly string[] {
  return row.map(({ start, end }) => text.slice(start, end))
}

/** Returns the span of a part of a text without the white space at its ends. */
export function trimSpan(text: string, start: number, end: number): Span {
  let [from, to] = [start, end]
  while (from < to && /\s/.test(text[from] ?? '')) from++
  while (to > from && /\s/.test(text[to - 1] ?? '')) to--
  return { start: from, end: to }
}

export function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end
}
