import { invalid } from '../../core/errors.ts'
import type { Audience, PromptMessage } from '../../core/provider.ts'
import { encodePath } from '../../core/uri.ts'
import { promptFault } from './header.ts'

/** A piece of the text of a prompt: as it stands, the place of an argument, or a resource (its URI in pieces). */
export type Piece =
  | { readonly text: string }
  | { readonly argument: string; readonly source: string; readonly required: boolean }
  | { readonly uri: readonly Piece[]; readonly source: string }

/** Section of the text that one role speaks. */
export interface Section {
  readonly role: Audience
  readonly pieces: readonly Piece[]
}

/** How long a prompt is at most with its arguments, in characters: one of them may have many places. */
const maxFilled = 4 * 1024 * 1024

/** A line by itself that begins what a role says, as dotprompt has it. */
const roleLine = /^[ \t]{0,3}\{\{[ \t]?role[ \t]{1,4}["'](\w{1,20})["'][ \t]?\}\}[ \t]*$/

const roles: Readonly<Record<string, Audience>> = { user: 'user', assistant: 'assistant', model: 'assistant' }

/**
 * The places in a text: `{{name}}`, what VS Code (`${input:name}`) and Claude Code (`$ARGUMENTS`) write for it, and
 * `![[URI]]`. A `\` before one takes its meaning.
 */
const places =
  /\\?(?:\{\{[ \t]?([A-Za-z_][\w-]{0,63})[ \t]?\}\}|\$\{input:([A-Za-z_][\w-]{0,63})(?::[^{}\n]{0,500})?\}|\$(ARGUMENTS)\b|!\[\[([^[\]\n]{1,2048})\]\])/g

/** @throws ResourceError `invalid` for a role that MCP does not have, or where nothing is said. */
export function parseSections(body: string): readonly Section[] {
  const sections: { role: Audience; lines: string[] }[] = [{ role: 'user', lines: [] }]
  for (const line of body.split(/\r?\n/)) {
    const [, role] = roleLine.exec(line) ?? []
    if (role === undefined) sections.at(-1)?.lines.push(line)
    else if (roles[role] === undefined) throw promptFault(`it has the role ${role}: there are user and assistant`)
    else sections.push({ role: roles[role], lines: [] })
  }
  const parsed = sections.map(({ role, lines }) => ({ role, pieces: piecesOf(lines.join('\n').trim()) }))
  const said = parsed.filter(({ pieces }) => pieces.length > 0)
  if (said.length === 0) throw promptFault('it has no text')
  return said
}

function piecesOf(text: string, embeds = true): readonly Piece[] {
  const pieces: Piece[] = []
  let end = 0
  const put = (piece: Piece, at: number, length: number) => {
    if (at > end) pieces.push({ text: text.slice(end, at) })
    pieces.push(piece)
    end = at + length
  }
  for (const match of text.matchAll(places)) {
    const [source, braced, input, all, uri] = match
    const argument = braced ?? input ?? (all === undefined ? undefined : 'arguments')
    if (source.startsWith('\\')) put({ text: source.slice(1) }, match.index, source.length)
    else if (argument !== undefined) put({ argument, source, required: all === undefined }, match.index, source.length)
    // Notes embed each other like this too: what has no scheme is theirs.
    else if (embeds && uri !== undefined && /^(?:[a-z][a-z0-9+.-]*:|\{\{)/.test(uri))
      put({ uri: piecesOf(uri, false), source }, match.index, source.length)
  }
  if (end < text.length) pieces.push({ text: text.slice(end) })
  return pieces
}

/** The arguments that a text has places for, in their order. */
export function placesIn(sections: readonly Section[]): ReadonlyMap<string, { readonly required: boolean }> {
  const found = new Map<string, { readonly required: boolean }>()
  const look = (pieces: readonly Piece[]) => {
    for (const piece of pieces)
      if ('uri' in piece) look(piece.uri)
      else if ('argument' in piece && !found.has(piece.argument))
        found.set(piece.argument, { required: piece.required })
  }
  for (const { pieces } of sections) look(pieces)
  return found
}

/**
 * Puts arguments into their places, once: what a value holds is never looked at again. A place that is none of the
 * arguments' stays as it was written. In a URI a value is encoded as a path, unless it begins the URI.
 *
 * @param known The arguments of the prompt.
 * @throws ResourceError `invalid` for what is too long with them.
 */
export function fillSections(
  sections: readonly Section[],
  known: ReadonlySet<string>,
  given: ReadonlyMap<string, string>,
): readonly PromptMessage[] {
  let length = 0
  const counted = (text: string) => {
    length += text.length
    if (length <= maxFilled) return text
    throw invalid('The prompt is too long with these arguments.', 'too-large', { limit: maxFilled })
  }
  const valueAt = (name: string, source: string) => (known.has(name) ? (given.get(name) ?? '') : source)
  const uriOf = (pieces: readonly Piece[]) =>
    pieces
      .map((piece, index) => {
        if ('text' in piece) return piece.text
        if ('uri' in piece) return piece.source
        const value = valueAt(piece.argument, piece.source)
        return counted(index === 0 ? value : encodePath(value.toWellFormed()))
      })
      .join('')
  const messages: PromptMessage[] = []
  for (const { role, pieces } of sections) {
    let text = ''
    const flush = () => {
      if (text.trim() !== '') messages.push({ role, content: { text: text.replace(/^(?:[ \t]*\n)+|\s+$/g, '') } })
      text = ''
    }
    for (const piece of pieces) {
      if ('text' in piece) text += piece.text
      else if ('argument' in piece) text += counted(valueAt(piece.argument, piece.source))
      else {
        flush()
        messages.push({ role, content: { uri: uriOf(piece.uri) } })
      }
    }
    flush()
  }
  return messages
}
