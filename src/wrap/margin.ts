import type { Content, Provider } from '../core/provider.ts'
import { mostLines, placeless, type TailFacts, tailIn, tailKey } from './tail.ts'

/** How many lines are looked at before those that are shown: the longest key that is known for one has as many. */
const margin = 1000

/**
 * Lets what is asked for as the end of a text go through a wrapper with lines before it, which are cut off again: where
 * an end begins in the middle of something, nobody could tell what that is.
 *
 * @param through Takes something out of texts, and leaves their other lines as they are.
 */
export function withMargin(provider: Provider, through: (provider: Provider) => Provider): Provider {
  const inner = through(provider)
  return {
    ...inner,
    read: async (request, context) => {
      const count = tailIn(request.params)
      if (count === undefined) return inner.read(request, context)
      const more = String(Math.min(count + margin, mostLines))
      const contents = await inner.read({ ...request, params: new Map([...request.params, ['tail', more]]) }, context)
      return contents.map((content) => lastLines(content, count))
    },
  }
}

/** Returns the last lines of a text. Facts about lines refer to these; byte offsets refer to the source and are left out. */
function lastLines(content: Content, count: number): Content {
  if (!('text' in content)) return content
  const { text, ...facts } = content
  const { meta = {}, ...rest } = placeless(facts)
  const told = meta[tailKey] as TailFacts | undefined
  const ends = Array.from(text.matchAll(/\n(?!$)/g), ({ index }) => index + 1)
  const cut = ends.length < count ? 0 : (ends[ends.length - count] ?? 0)
  const lines = Math.min(count, text === '' ? 0 : ends.length + 1)
  const shown: TailFacts | undefined = told && { ...told, lines, earlier: told.earlier || cut > 0 }
  return { ...rest, meta: { ...meta, ...(shown === undefined ? {} : { [tailKey]: shown }) }, text: text.slice(cut) }
}
