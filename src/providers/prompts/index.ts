import { invalid, isResourceError, notFound } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import { requireKeys } from '../../core/kit/required.ts'
import type { Log } from '../../core/log.ts'
import type { Change, Context, Prompt, PromptArgument, PromptMessage, Prompts, Provider } from '../../core/provider.ts'
import { splitFrontMatter } from '../../text/front-matter.ts'
import { headingIn } from '../../text/heading.ts'
import { type Header, parseHeader } from './header.ts'
import { fillSections, parseSections, placesIn, type Section } from './text.ts'

export interface PromptsOptions {
  /** Provider of the files. Files whose names end in `.md` are prompts, except `README.md`. */
  readonly source: Provider
  /** Maximum number of prompts; the others are left out. Default 1,000. */
  readonly limit?: number
  readonly log?: Log
}

/** A prompt as it is written. */
interface Written {
  readonly prompt: Prompt
  readonly header: Header
  readonly sections: readonly Section[]
}

/** The longest prompt, in characters. */
const maxLength = 256 * 1024

/**
 * The prompts in Markdown files: the resources of a source, of which the Markdown files are prompts as well.
 *
 * A file that is no prompt (its front matter is faulty, it is too long, it is empty) is a resource all the same; the log says
 * why it is none.
 */
export function prompts(options: PromptsOptions): Provider {
  requireKeys('prompts({ source })', options, { source: 'an object' })
  const { source, limit = 1000, log = () => {} } = options
  const known = new Map<string, { readonly version: string; readonly written: Written | undefined }>()
  const told = new Set<string>()

  const tell = (path: string, fault: string): void => {
    const line = `${path} ${fault}`
    if (told.has(line)) return
    if (told.size >= limit) told.clear()
    told.add(line)
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

  /** The prompt at a path. `undefined`: it is none, for whatever reason. */
  const read = async (path: string, context: Context): Promise<Written | undefined> => {
    const [content] = await source.read({ path, params: new Map() }, context)
    if (content === undefined || !('text' in content)) return void tell(path, 'it is no text')
    if (content.text.length > maxLength) return void tell(path, `it is longer than ${maxLength} characters`)
    return parse(path, content.text)
  }

  const listed = async (path: string, version: string | undefined, context: Context): Promise<Written | undefined> => {
    const before = known.get(path)
    if (before !== undefined && before.version === version) return before.written
    const written = await read(path, context).catch((error: unknown) => {
      // It has gone just now, or it is one that this process may not read.
      if (isResourceError(error, 'unavailable') || !isResourceError(error)) throw error
      return undefined
    })
    if (version !== undefined) {
      if (known.size >= 2 * limit) known.clear()
      known.set(path, { version, written })
    }
    return written
  }

  const own: Prompts = {
    list: async (context) => {
      const found: Prompt[] = []
      for await (const { path, version } of source.list({}, context)) {
        context.signal.throwIfAborted()
        if (!isPromptPath(path)) continue
        const written = await listed(path, version, context)
        if (written === undefined) continue
        if (found.length >= limit) {
          tell(path, `there are more than ${limit} prompts`)
          break
        }
        found.push(written.prompt)
      }
      return found
    },
    get: async ({ path, arguments: given }, context) => {
      const written = isPromptPath(path) ? await read(path, context) : undefined
      if (written === undefined) throw notFound('no prompt')
      const { prompt, header, sections } = written
      const names = new Set((prompt.arguments ?? []).map(({ name }) => name))
      const before = header.resources.map((uri): PromptMessage => ({ role: 'user', content: { uri } }))
      const messages = [...before, ...fillSections(sections, names, given)]
      if (messages.length === 0)
        throw invalid('Nothing is left of this prompt: its arguments are empty.', 'empty-prompt')
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

/** Whether a file may be a prompt. */
function isPromptPath(path: string): boolean {
  return /\.md$/i.test(path) && !/(?:^|\/)readme\.md$/i.test(path)
}

/** Marks changes of prompts as changes of the listing too: the list shows facts from a prompt's text. */
async function* asListed(changes: AsyncIterable<Change>): AsyncGenerator<Change> {
  for await (const change of changes)
    yield change.path !== undefined && isPromptPath(change.path) ? { ...change, listed: true } : change
}

/** @throws ResourceError `invalid` where it is no prompt. */
function writtenIn(path: string, text: string): Written {
  const { head, body } = splitFrontMatter(text)
  const header = parseHeader(head)
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

/** The arguments of a prompt that declares none: those that its text has places for. */
function argumentsIn(sections: readonly Section[], hint: string | undefined): readonly PromptArgument[] {
  return [...placesIn(sections)].map(([name, { required }]) => ({
    name,
    ...(name === 'arguments' && hint !== undefined ? { description: hint } : {}),
    required,
  }))
}
