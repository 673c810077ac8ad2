import { ResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/defined.ts'
import { wholeCharacters } from '../core/kit/utf8.ts'
import type { Content, Context, Provider, ReadRequest, Template } from '../core/provider.ts'
import { isMedia } from '../text/encoding/binary.ts'
import { isTextPart } from './chunks.ts'
import { behindNewline, type Ending, readEnding } from './ending.ts'
import { type PartFacts, partKey } from './part.ts'
import { badTail, type TailFacts, tailIn, tailKey, withoutTail } from './tail.ts'

export interface TailedOptions {
  /** The most that is answered at once, in bytes. Default 1 MiB. */
  readonly maxBytes?: number
  /** For how long after it was changed a resource is taken to be still written to, in milliseconds. Default 3000. */
  readonly settleMs?: number
}

const template: Template = {
  template: '{+path}{?tail}',
  free: ['tail'],
  name: 'End of a text',
  title: 'The last lines of a text',
  description:
    'tail=200 is the last 200 lines of a text, such as a log. A last line that is just being written is left out; ' +
    `\`_meta\` says so under "${tailKey}".`,
}

/**
 * Gives every text of a provider its end: `?tail=200` is the last 200 lines.
 *
 * The end is read backwards where the provider can read ranges, and is of one version; how large the resource is makes no
 * difference. A last line without a newline may be written in half: it is left out while the resource is being written to
 * (it changed within the last `settleMs`, and has other lines), and shown otherwise. `meta` says which ({@link TailFacts}),
 * and where in the resource the lines are (see `sliced`).
 *
 * Lines are found in the bytes, in any encoding that has ASCII in it and in UTF-16 with a byte order mark: `decoded` belongs
 * around this.
 *
 * Reads throw ResourceError `invalid` (reason `tail`) for a malformed number, and for what is no text.
 */
export function tailed(provider: Provider, options: TailedOptions = {}): Provider {
  const limit = options.maxBytes ?? 1024 * 1024
  const settleMs = options.settleMs ?? 3000

  const isBeingWritten = async (path: string, context: Context): Promise<boolean> => {
    const modified = (await provider.stat?.(path, context))?.modified
    return modified !== undefined && Date.now() - modified < settleMs
  }

  const readTail = async (count: number, request: ReadRequest, context: Context): Promise<Content> => {
    const ending = await readEnding(provider, request, { count, limit }, context)
    const { bytes, newline } = ending
    const finished = behindNewline(bytes, bytes.length, newline)
    const isUnfinished = finished < bytes.length
    const isLeftOut = isUnfinished && finished > 0 && (await isBeingWritten(request.path, context))
    const unfinished = isUnfinished ? ({ unfinished: isLeftOut ? 'left-out' : 'shown' } as const) : {}
    return answer(ending, count, isLeftOut ? finished : bytes.length, unfinished)
  }

  return {
    ...provider,
    read: async (request, context) => {
      const count = tailIn(request.params)
      if (count === undefined) return provider.read(request, context)
      if (request.range !== undefined) throw badTail('Ask for the last lines or for a part, not for both: ?tail=200.')
      return [await readTail(count, withoutTail(request), context)]
    },
    templates: async (context) => [...((await provider.templates?.(context)) ?? []), template],
  }
}

/** The last lines before an index. */
function answer(ending: Ending, count: number, to: number, unfinished: Pick<TailFacts, 'unfinished'>): Content {
  const { bytes, start, facts, text, first, newline } = ending
  let from = to
  let lines = 0
  while (lines < count && from > 0) {
    const behind = behindNewline(bytes, from - newline.length, newline)
    // A line that begins before these bytes does not count, unless it is the only one.
    if (behind === 0 && start > first && lines > 0) break
    from = behind
    lines++
  }
  if (isMedia(facts.mimeType) || (newline.length === 1 && bytes.subarray(from, to).includes(0)))
    throw badTail('Only a text has last lines, and this is none. Write ?bytes=0-4095.')
  let cut = from
  if (from === 0 && start > first) {
    // In another encoding nothing shows where in a line a character begins.
    if (!isTextPart(bytes, facts)) throw lineTooLong(bytes.length)
    cut = wholeCharacters(bytes).from
  }
  const range = { start: start + cut, end: start + to }
  const place: PartFacts = {
    unit: 'bytes',
    first: range.start,
    last: range.end - 1,
    ...defined({ size: facts.size }),
    ...(to < bytes.length ? { next: `bytes=${range.end}-` } : {}),
  }
  const told: TailFacts = { lines, earlier: range.start > first, ...unfinished }
  const lastLines = bytes.subarray(cut, to)
  return {
    ...facts,
    range,
    meta: { ...facts.meta, [partKey]: place, [tailKey]: told },
    ...(text ? { text: lastLines.toString() } : { bytes: lastLines }),
  }
}

function lineTooLong(limit: number): ResourceError {
  return new ResourceError(
    'too-large',
    `The last line alone has more than ${limit} bytes, too many to be read at once.`,
    {
      reason: 'too-large',
      limit,
    },
  )
}
