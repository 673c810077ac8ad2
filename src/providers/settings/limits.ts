import { defined } from '../../core/kit/defined.ts'

/** Limits of the size and the depth of a configuration file. A larger file is refused before it fills the memory. */
export interface Limits {
  /** Bytes of the file. */
  readonly maxBytes: number
  /** Maximum nesting of lists and tables. */
  readonly maxDepth: number
  /** Values, lists and tables, counted as often as aliases repeat them. */
  readonly maxNodes: number
}

export const defaultLimits: Limits = { maxBytes: 1024 * 1024, maxDepth: 64, maxNodes: 100_000 }

/** Why a file cannot be read, and where. The message contains nothing of the file. */
export interface Fault {
  readonly what: string
  /** In UTF-16 code units. */
  readonly offset: number
  /** The exceeded limit, if there is one. */
  readonly limit?: number
}

/** Value that a parser throws. It is not an Error: it never leaves the module, and holds no text of the file. */
interface ParseFault {
  readonly fault: Fault
}

export function fault(what: string, offset: number, limit?: number): ParseFault {
  return { fault: { what, offset, ...defined({ limit }) } }
}

export function isParseFault(error: unknown): error is ParseFault {
  return typeof error === 'object' && error !== null && 'fault' in error
}

/** Counts nodes and depth. */
export interface Budget {
  /** Enters a node at a depth. Throws a {@link ParseFault} beyond a limit. */
  enter(depth: number, offset: number): void
}

export function createBudget({ maxDepth, maxNodes }: Limits): Budget {
  let nodes = 0
  return {
    enter: (depth, offset) => {
      if (depth > maxDepth) throw fault(`It is nested deeper than ${maxDepth}.`, offset, maxDepth)
      if (++nodes > maxNodes) throw fault(`It has more than ${maxNodes} values.`, offset, maxNodes)
    },
  }
}

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
