import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'

/**
 * How a value is written, and so how the mark replaces it. `inside`: between quotes that stay. `quoted`: the mark needs quotes
 * of its own. `plain`: up to the end of a line. `block`: a block scalar of YAML with its final line end.
 */
type ValueStyle = 'inside' | 'quoted' | 'plain' | 'block'

export interface Scalar {
  readonly kind: 'scalar'
  /** The decoded text, in which secrets are searched. */
  readonly text: string
  /** The value as JSON. Integers beyond the safe ones of a double, and numbers too large for a double, are texts. */
  readonly json: string
  readonly start: number
  readonly end: number
  readonly writing: ValueStyle
}

interface List {
  readonly kind: 'list'
  readonly items: readonly SettingsNode[]
}

/** If a name occurs twice, the last value applies. */
export interface Table {
  readonly kind: 'table'
  readonly entries: readonly TableEntry[]
}

export interface TableEntry {
  readonly key: string
  readonly value: SettingsNode
}

export type SettingsNode = Scalar | List | Table

/** Parsed content of a file. Nodes may be shared (aliases of YAML), but never contain themselves. */
export interface SettingsTree {
  readonly root: SettingsNode
  /** Settings that were commented out: they are checked for secrets, but are not part of the value. */
  readonly commented?: readonly TableEntry[]
  /** Lines that this format does not know. They are hidden. */
  readonly unknown?: readonly { readonly start: number; readonly end: number }[]
}

export function childOf(node: SettingsNode, step: string): SettingsNode | undefined {
  if (node.kind === 'table') return node.entries.findLast(({ key }) => key === step)?.value
  if (node.kind === 'list' && /^(?:0|[1-9]\d{0,9})$/.test(step)) return node.items[Number(step)]
  return undefined
}

/** Returns a number as JSON: a text if it is an integer beyond the safe ones of a double, or too large for one. `undefined` for no number. */
export function jsonNumber(lexeme: string): string | undefined {
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(lexeme)) return undefined
  if (/^-?\d+$/.test(lexeme)) return Number.isSafeInteger(Number(lexeme)) ? lexeme : JSON.stringify(lexeme)
  return Number.isFinite(Number(lexeme)) ? lexeme : JSON.stringify(lexeme)
}

export function createTextScalar(text: string, span: Omit<Scalar, 'kind' | 'text' | 'json'>): Scalar {
  return { kind: 'scalar', text, json: JSON.stringify(text), ...span }
}

/** @throws ResourceError `invalid` (reason `parameter`) for a malformed pointer (RFC 6901). */
export function parsePointer(pointer: string): readonly string[] {
  if (pointer === '') return []
  if (!pointer.startsWith('/'))
    throw invalid(
      'A pointer must begin with "/". Write one such as ?pointer=/db/host, or leave it empty for the whole file.',
      'parameter',
      {
        parameter: 'pointer',
      },
    )
  if (/~(?![01])/.test(pointer))
    throw invalid(
      'A pointer has a "~" that is not part of an escape. Write "~0" for "~", and "~1" for "/" within a name.',
      'parameter',
      {
        parameter: 'pointer',
      },
    )
  return pointer.slice(1).split('/').map(unescapeStep)
}

export function unescapeStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}

export function escapeStep(step: string): string {
  return step.replaceAll('~', '~0').replaceAll('/', '~1')
}

export interface SettingsLimits {
  /** Maximum size of the file, in bytes. */
  readonly maxBytes: number
  readonly maxDepth: number
  /** Maximum number of values, lists and tables, counted as often as aliases repeat them. */
  readonly maxNodes: number
}

export const defaultSettingsLimits: SettingsLimits = { maxBytes: 1024 * 1024, maxDepth: 64, maxNodes: 100_000 }

/** Why a file cannot be read, and where. The message contains nothing of the file. */
export interface SettingsFault {
  readonly what: string
  /** Position in the file, in UTF-16 code units from 0. */
  readonly offset: number
  readonly limit?: number
}

/** Value that a parser throws. It is no Error, and holds no text of the file. */
interface ParseFault {
  readonly fault: SettingsFault
}

export function createParseFault(what: string, offset: number, limit?: number): ParseFault {
  return { fault: { what, offset, ...defined({ limit }) } }
}

export function isParseFault(error: unknown): error is ParseFault {
  return typeof error === 'object' && error !== null && 'fault' in error
}

export function createNodeCounter({ maxDepth, maxNodes }: SettingsLimits) {
  let nodes = 0
  return {
    /** Throws a {@link ParseFault} beyond a limit. */
    enter: (depth: number, offset: number): void => {
      if (depth > maxDepth) throw createParseFault(`It has more than ${maxDepth} levels.`, offset, maxDepth)
      if (++nodes > maxNodes) throw createParseFault(`It has more than ${maxNodes} values.`, offset, maxNodes)
    },
  }
}

export type NodeCounter = ReturnType<typeof createNodeCounter>

/** Returns the line and column of a position in a text, both from 1. */
export function positionOf(text: string, offset: number): { readonly line: number; readonly column: number } {
  let line = 1
  let start = 0
  for (const match of text.slice(0, offset).matchAll(/\r\n|\r|\n/g)) {
    line++
    start = match.index + match[0].length
  }
  return { line, column: offset - start + 1 }
}
