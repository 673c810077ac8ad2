import { isObject } from '../../core/kit/object.ts'
import { redactedMark, type Scrubber } from '../../core/scrub.ts'
import type { View } from '../../core/view.ts'

/**
 * Removes known secrets from the answers of a view, since the output of a command often goes to a model. The URI that
 * the caller asked for stays. In another URI, a mark replaces the secret, and the URI stays well-formed.
 */
export function cleanView(view: View, scrubber: Scrubber): View {
  const clean = <T>(value: T, own?: string): T => cleaned(value, scrubber, own) as T
  const { prompts, tools, skills, subscribe, stat, changed } = view
  return {
    ...view,
    mounts: async (options) => clean(await view.mounts(options)),
    list: async (query, options) => clean(await view.list(query, options)),
    templates: async (query, options) => clean(await view.templates(query, options)),
    read: async (uri, options) => clean(await view.read(uri, options), uri),
    directory: async (query, options) => clean(await view.directory(query, options)),
    complete: async (request, options) => clean(await view.complete(request, options)),
    ...(stat && { stat: async (uri, options) => clean(await stat(uri, options), uri) }),
    ...(changed && { changed: async (query, options) => clean(await changed(query, options)) }),
    ...(subscribe && { subscribe: (listener) => subscribe((change) => listener(clean(change))) }),
    ...(prompts && {
      prompts: {
        ...prompts,
        list: async (query, options) => clean(await prompts.list(query, options)),
        get: async (request, options) => clean(await prompts.get(request, options)),
        complete: async (request, options) => clean(await prompts.complete(request, options)),
      },
    }),
    ...(tools && {
      tools: {
        ...tools,
        list: async (reserved, options) => {
          const listed = await tools.list(reserved, options)
          return {
            ...listed,
            tools: listed.tools.map((tool) => ({
              ...clean(tool),
              call: async (args, context, report) =>
                clean(await tool.call(args, context, report && ((progress) => report(clean(progress))))),
            })),
          }
        },
      },
    }),
    ...(skills && {
      skills: {
        list: async (query, options) => clean(await skills.list(query, options)),
        get: async (uri, options) => clean(await skills.get(uri, options), uri),
      },
    }),
  }
}

export function cleanValue<T>(value: T, scrubber: Scrubber): T {
  return cleaned(value, scrubber, undefined) as T
}

/** @param own The URI that the caller asked for, which stays. */
function cleaned(value: unknown, scrubber: Scrubber, own: string | undefined, key = ''): unknown {
  if (typeof value === 'string') {
    if (value === own) return value
    const text = scrubber.scrub(value)
    return /^uri/i.test(key) ? text.replaceAll(redactedMark, encodeURIComponent(redactedMark)) : text
  }
  if (value instanceof Uint8Array) return scrubber.scrubBytes(value)
  if (Array.isArray(value)) return value.map((item) => cleaned(item, scrubber, own, key))
  if (!isObject(value)) return value
  if (Symbol.asyncIterator in value) return cleanStream(value as unknown as AsyncIterable<Uint8Array>, scrubber)
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, cleaned(member, scrubber, own, name)]))
}

export async function* cleanStream(bytes: AsyncIterable<Uint8Array>, scrubber: Scrubber): AsyncGenerator<Uint8Array> {
  const stream = scrubber.stream()
  for await (const piece of bytes) yield* stream.push(piece)
  yield stream.end()
}
