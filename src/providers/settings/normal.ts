import { redactedMark } from '../../core/scrub.ts'
import type { Span } from '../../secrets/spans.ts'
import type { Denied } from './judge.ts'
import type { Node, Scalar } from './tree.ts'

/** Span of a value in the JSON, without its quotes. */
export interface Leaf {
  readonly scalar: Scalar
  readonly start: number
  readonly end: number
}

export interface Normal {
  readonly text: string
  readonly leaves: readonly Leaf[]
  /** Spans of names and values, without their quotes, in order: everything except the syntax of JSON. */
  readonly words: readonly Span[]
}

/** Writes a node as JSON, indented by two, with the mark for what is denied. Of a key that is there twice, the last holds. */
export function writeJson(root: Node, denied: Denied): Normal {
  const pieces: string[] = []
  const leaves: Leaf[] = []
  const words: Span[] = []
  let length = 0
  const put = (text: string) => {
    pieces.push(text)
    length += text.length
  }

  const writeScalar = (scalar: Scalar) => {
    if (denied.has(scalar)) {
      put(JSON.stringify(redactedMark))
      return
    }
    const quotes = scalar.json.startsWith('"') ? 1 : 0
    const place = { start: length + quotes, end: length + scalar.json.length - quotes }
    leaves.push({ scalar, ...place })
    words.push(place)
    put(scalar.json)
  }

  const write = (node: Node, indent: string): void => {
    if (node.kind === 'scalar') writeScalar(node)
    else if (node.kind === 'list')
      writeAll(
        '[',
        node.items.map((value) => [undefined, value] as const),
        ']',
        indent,
      )
    else {
      // By way of a map, since `__proto__` is a name like any other.
      const members = [...new Map(node.entries.map(({ key, value }) => [key, value]))]
      writeAll('{', members, '}', indent)
    }
  }

  const writeName = (name: string) => {
    const json = JSON.stringify(name)
    words.push({ start: length + 1, end: length + json.length - 1 })
    put(`${json}: `)
  }

  const writeAll = (
    open: string,
    members: readonly (readonly [name: string | undefined, value: Node])[],
    close: string,
    indent: string,
  ) => {
    put(open)
    for (const [i, [name, value]] of members.entries()) {
      put(`${i === 0 ? '' : ','}\n${indent}  `)
      if (name !== undefined) writeName(name)
      write(value, `${indent}  `)
    }
    put(members.length === 0 ? close : `\n${indent}${close}`)
  }

  write(root, '')
  put('\n')
  return { text: pieces.join(''), leaves, words }
}
