import { eventLoopYield } from '../core/kit/event-loop-yield.ts'

/** Length, in characters, from which a text is parsed in parts, and the least length of a part. */
export const partLength = 256 * 1024

/** Depth of the lists that are parsed in parts: those of a message are members of its result. */
const listDepth = 3

/**
 * Parses the JSON of a message as `JSON.parse` does, and yields the event loop between parts of a long one.
 *
 * @throws SyntaxError
 */
export async function parseLarge(text: string, leastLength = partLength): Promise<unknown> {
  if (text.length < leastLength) return JSON.parse(text)
  const lists: unknown[][] = []
  /** The text, in which the content of each list is replaced by the number of the list. */
  let frame = ''
  let framed = 0
  let depth = 0
  /** The open list, the position at which its next part begins, and whether a comma precedes that position. */
  let list: unknown[] | undefined
  let start = 0
  let isBehindComma = false
  const takePart = (end: number) => {
    const part = text.slice(start, end)
    // There must be an item on both sides of a comma.
    const isEmptyList = text[end] === ']' && !isBehindComma
    if (part.trim() === '' && !isEmptyList) throw new SyntaxError('A list has a comma without an item.')
    for (const item of JSON.parse(`[${part}]`) as readonly unknown[]) list?.push(item)
    start = end + 1
    isBehindComma = true
  }
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"') at = endOfString(text, at)
    else if (character === '{' || character === '[') {
      if (++depth !== listDepth || character === '{') continue
      frame += `${text.slice(framed, at)}[${lists.length}]`
      list = []
      lists.push(list)
      start = at + 1
      isBehindComma = false
    } else if (character === '}' || character === ']') {
      if (depth-- !== listDepth || list === undefined) continue
      if (character === '}') throw new SyntaxError('A list ends with a brace.')
      takePart(at)
      list = undefined
      framed = at + 1
    } else if (character === ',' && depth === listDepth && list !== undefined && at - start >= leastLength) {
      takePart(at)
      if (eventLoopYield.due()) await eventLoopYield.take()
    }
  }
  if (list !== undefined) throw new SyntaxError('A list has no end.')
  return filled(JSON.parse(frame + text.slice(framed)), lists, 1)
}

/** Returns the position of the quote that ends a string, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let escapes = 0
    while (text[at - 1 - escapes] === '\\') escapes++
    if (escapes % 2 === 0) return at
  }
  return text.length
}

/** Puts the lists into their places, in a value that was parsed from a frame. */
function filled(value: unknown, lists: readonly (readonly unknown[])[], depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth === listDepth) return Array.isArray(value) ? lists[value[0] as number] : value
  const entries = Object.entries(value).map(([key, one]) => [key, filled(one, lists, depth + 1)] as const)
  return Array.isArray(value) ? entries.map(([, one]) => one) : Object.fromEntries(entries)
}
