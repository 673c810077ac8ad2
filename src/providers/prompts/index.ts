import { invalid, isResourceError, notFound } from '../../core/errors.ts'
import { defined, requireKeys } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import type {
  Audience,
  Change,
  Context,
  Prompt,
  PromptArgument,
  PromptMessage,
  Prompts,
  Provider,
} from '../../core/provider.ts'
import { encodePath } from '../../core/uri.ts'
import { headingIn, splitFrontMatter } from '../../text/front-matter.ts'
import { type PromptFrontMatter, parsePromptFrontMatter, promptError } from './header.ts'

export interface PromptsOptions {
  /** Provider of the files. Files whose names end in `.md` are prompts, except `README.md`. */
  readonly source: Provider
  /** Maximum number of prompts; the others are left out. Default 1,000. */
  readonly limit?: number
  readonly log?: Log
}

interface Written {
  readonly prompt: Prompt
  readonly header: PromptFrontMatter
  readonly sections: readonly Section[]
}

/** Maximum length of a prompt, in characters. */
const maxLength = 256 * 1024

/**
 * Provider of prompts in Markdown files: it serves the resources of a source, and its Markdown files also as prompts.
 *
 * A file that is not a valid prompt (faulty front matter, too long, empty) is only a resource; the log says why.
 */
export function prompts(options: PromptsOptions): Provider {
  requireKeys('prompts({ source })', options, { source: 'an object' })
  const { source, limit = 1000, log = () => {} } = options
  const promptsByPath = new Map<string, { readonly version: string; readonly written: Written | undefined }>()
  const paths = new Set<string>()

  const tell = (path: string, fault: string): void => {
    const line = `${path} ${fault}`
    if (paths.has(line)) return
    if (paths.size >= limit) paths.clear()
    paths.add(line)
    log('warn', 'a file is left out of the prompts', { path, fault })
  }

  const parse = (path: string, text: string): Written | undefined => {
    try {
      return writtenIn(path, text)
    } catch (error) {
      if (!isResourceError(error, 'invalid')) throw error
      tell(path, error.message)
      return undefined
    }
  }

  /** `undefined`: the file is not a prompt. */
  const readPrompt = async (path: string, context: Context): Promise<Written | undefined> => {
    const [content] = await source.read({ path, params: new Map() }, context)
    if (content === undefined || !('text' in content)) return void tell(path, 'it is not text')
    if (content.text.length > maxLength) return void tell(path, `it is longer than ${maxLength} characters`)
    return parse(path, content.text)
  }

  const cachedPrompt = async (
    path: string,
    version: string | undefined,
    context: Context,
  ): Promise<Written | undefined> => {
    const before = promptsByPath.get(path)
    if (before !== undefined && before.version === version) return before.written
    const prompt = await readPrompt(path, context).catch((error: unknown) => {
      // After any other error, the file was deleted meanwhile, or this process may not read it.
      if (isResourceError(error, 'unavailable') || !isResourceError(error)) throw error
      return undefined
    })
    if (version !== undefined) {
      if (promptsByPath.size >= 2 * limit) promptsByPath.clear()
      promptsByPath.set(path, { version, written: prompt })
    }
    return prompt
  }

  const own: Prompts = {
    list: async (context) => {
      const prompts: Prompt[] = []
      for await (const { path, version } of source.list({}, context)) {
        context.signal.throwIfAborted()
        if (!isPromptPath(path)) continue
        const prompt = await cachedPrompt(path, version, context)
        if (prompt === undefined) continue
        if (prompts.length >= limit) {
          tell(path, `there are more than ${limit} prompts`)
          break
        }
        prompts.push(prompt.prompt)
      }
      return prompts
    },
    get: async ({ path, arguments: values }, context) => {
      const writtenPrompt = isPromptPath(path) ? await readPrompt(path, context) : undefined
      if (writtenPrompt === undefined) throw notFound('no prompt is at this path')
      const { prompt, header, sections } = writtenPrompt
      const names = new Set((prompt.arguments ?? []).map(({ name }) => name))
      const before = header.resources.map((uri): PromptMessage => ({ role: 'user', content: { uri } }))
      const messages = [...before, ...fillSections(sections, names, values)]
      if (messages.length === 0)
        throw invalid(
          'Nothing is left of this prompt, because its arguments are empty. Fill in an argument.',
          'argument',
        )
      return { ...defined({ description: prompt.description }), messages }
    },
  }

  const { watch } = source
  return {
    ...source,
    prompts: own,
    ...(watch === undefined ? {} : { watch: async (signal) => asListed(await watch(signal)) }),
  }
}

function isPromptPath(path: string): boolean {
  return /\.md$/i.test(path) && !/(?:^|\/)readme\.md$/i.test(path)
}

/** Marks changes of prompts as changes of the listing too: the list shows facts from a prompt's text. */
async function* asListed(changes: AsyncIterable<Change>): AsyncGenerator<Change> {
  for await (const change of changes)
    yield change.path !== undefined && isPromptPath(change.path) ? { ...change, listed: true } : change
}

/** @throws ResourceError `invalid` if the file is not a prompt. */
function writtenIn(path: string, text: string): Written {
  const { head, body } = splitFrontMatter(text)
  const header = parsePromptFrontMatter(head)
  const sections = parseSections(body)
  const { name = path.replace(/(?:\.prompt)?\.md$/i, ''), title = headingIn(body), description } = header
  const declared = header.arguments ?? argumentsIn(sections, header.hint)
  const prompt = {
    path,
    name,
    ...defined({ title, description }),
    ...(declared.length === 0 ? {} : { arguments: declared }),
  }
  return { prompt, header, sections }
}

function argumentsIn(sections: readonly Section[], hint: string | undefined): readonly PromptArgument[] {
  return [...placeholdersIn(sections)].map(([name, { required }]) => ({
    name,
    ...(name === 'arguments' && hint !== undefined ? { description: hint } : {}),
    required,
  }))
}

/** A piece of the text of a prompt: plain text, a placeholder of an argument, or a resource (its URI in pieces). */
type PromptPiece =
  | { readonly text: string }
  | { readonly argument: string; readonly source: string; readonly required: boolean }
  | { readonly uri: readonly PromptPiece[]; readonly source: string }

interface Section {
  readonly role: Audience
  readonly pieces: readonly PromptPiece[]
}

/** Maximum length of a prompt with its arguments, in characters, because an argument may be inserted many times. */
const maxFilled = 4 * 1024 * 1024

/** A line that begins the text of a role, as in dotprompt. */
const roleLine = /^[ \t]{0,3}\{\{[ \t]?role[ \t]{1,4}["'](\w{1,20})["'][ \t]?\}\}[ \t]*$/

const roles: Readonly<Record<string, Audience>> = { user: 'user', assistant: 'assistant', model: 'assistant' }

/**
 * The placeholders in a text: `{{name}}`, the forms of VS Code (`${input:name}`) and Claude Code (`$ARGUMENTS`), and
 * `![[URI]]`. After a `\` they are plain text.
 */
const placeholders =
  /\\?(?:\{\{[ \t]?([A-Za-z_][\w-]{0,63})[ \t]?\}\}|\$\{input:([A-Za-z_][\w-]{0,63})(?::[^{}\n]{0,500})?\}|\$(ARGUMENTS)\b|!\[\[([^[\]\n]{1,2048})\]\])/g

/** @throws ResourceError `invalid` for a role that MCP does not have, and for a prompt without text. */
function parseSections(body: string): readonly Section[] {
  const sections: { role: Audience; lines: string[] }[] = [{ role: 'user', lines: [] }]
  for (const line of body.split(/\r?\n/)) {
    const [, role] = roleLine.exec(line) ?? []
    if (role === undefined) sections.at(-1)?.lines.push(line)
    else if (roles[role] === undefined) throw promptError(`it has the role ${role}: there are user and assistant`)
    else sections.push({ role: roles[role], lines: [] })
  }
  const messages = sections.map(({ role, lines }) => ({ role, pieces: parsePromptPieces(lines.join('\n').trim()) }))
  const nonEmpty = messages.filter(({ pieces }) => pieces.length > 0)
  if (nonEmpty.length === 0) throw promptError('it has no text')
  return nonEmpty
}

function parsePromptPieces(text: string, embeds = true): readonly PromptPiece[] {
  const pieces: PromptPiece[] = []
  let end = 0
  const putPiece = (piece: PromptPiece, at: number, length: number) => {
    if (at > end) pieces.push({ text: text.slice(end, at) })
    pieces.push(piece)
    end = at + length
  }
  for (const match of text.matchAll(placeholders)) {
    const [source, braced, input, all, uri] = match
    const argument = braced ?? input ?? (all === undefined ? undefined : 'arguments')
    if (source.startsWith('\\')) putPiece({ text: source.slice(1) }, match.index, source.length)
    else if (argument !== undefined)
      putPiece({ argument, source, required: all === undefined }, match.index, source.length)
    // Notes embed each other in the same form, but without a scheme: such embeds stay unchanged.
    else if (embeds && uri !== undefined && /^(?:[a-z][a-z0-9+.-]*:|\{\{)/.test(uri))
      putPiece({ uri: parsePromptPieces(uri, false), source }, match.index, source.length)
  }
  if (end < text.length) pieces.push({ text: text.slice(end) })
  return pieces
}

function placeholdersIn(sections: readonly Section[]): ReadonlyMap<string, { readonly required: boolean }> {
  const placeholders = new Map<string, { readonly required: boolean }>()
  const look = (pieces: readonly PromptPiece[]) => {
    for (const piece of pieces)
      if ('uri' in piece) look(piece.uri)
      else if ('argument' in piece && !placeholders.has(piece.argument))
        placeholders.set(piece.argument, { required: piece.required })
  }
  for (const { pieces } of sections) look(pieces)
  return placeholders
}

/**
 * Replaces the placeholders by arguments, once: values are not searched for placeholders. A placeholder for an unknown argument
 * stays. In a URI a value is encoded as a path, unless it begins the URI.
 *
 * @param placeholders The arguments of the prompt.
 * @throws ResourceError `invalid` if the result is too long.
 */
function fillSections(
  sections: readonly Section[],
  placeholders: ReadonlySet<string>,
  values: ReadonlyMap<string, string>,
): readonly PromptMessage[] {
  let length = 0
  const count = (text: string) => {
    length += text.length
    if (length <= maxFilled) return text
    throw invalid(`The prompt with these arguments has more than ${maxFilled} characters. Shorten them.`, 'too-large', {
      limit: maxFilled,
    })
  }
  const valueAt = (name: string, source: string) => (placeholders.has(name) ? (values.get(name) ?? '') : source)
  const uriOf = (pieces: readonly PromptPiece[]) =>
    pieces
      .map((piece, index) => {
        if ('text' in piece) return piece.text
        if ('uri' in piece) return piece.source
        const value = valueAt(piece.argument, piece.source)
        return count(index === 0 ? value : encodePath(value.toWellFormed()))
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
      else if ('argument' in piece) text += count(valueAt(piece.argument, piece.source))
      else {
        flush()
        messages.push({ role, content: { uri: uriOf(piece.uri) } })
      }
    }
    flush()
  }
  return messages
}
