import { defined, objectOf, objectSchema } from '../../core/kit/object.ts'
import { createArgumentReader, readOnlyHints, type Tool } from '../../core/tool.ts'
import type { View } from '../../core/view.ts'
import type { GrepPosition, MatchingLine } from '../../text/grep.ts'
import { decodeCursor, encodeCursor, limitSchema } from './shown.ts'

const limits = { least: 1, most: 500, otherwise: 50 }
const contexts = { least: 0, most: 10, otherwise: 0 }
const firstLines = { least: 1, most: Number.MAX_SAFE_INTEGER, otherwise: 1 }
/** Maximum time of a search, in milliseconds. */
const maxMs = 10_000

const findInput = objectSchema(['uri', 'pattern'], {
  uri: { type: 'string', description: 'The URI of the resource, as it was listed or found.' },
  pattern: { type: 'string', description: 'A regular expression in the syntax of RE2, matched in each line.' },
  literal: { type: 'boolean', description: 'Whether the pattern is plain text to find. By default false.' },
  ignore_case: { type: 'boolean', description: 'Whether upper and lower case make no difference. By default false.' },
  context: { ...limitSchema(contexts.otherwise, contexts.most), minimum: 0, description: 'Lines around each match.' },
  limit: limitSchema(limits.otherwise, limits.most),
  from: { type: 'integer', minimum: 1, description: 'The number of the line to begin at. By default 1.' },
  cursor: { type: 'string', description: 'The `next` of the previous answer. Leave the other arguments the same.' },
})

const linesSchema = { type: 'array', items: { type: 'string' } }
const matchSchema = objectSchema(['line', 'text', 'start', 'end'], {
  line: { type: 'integer', description: 'The number of the line, from 1.' },
  text: { type: 'string', description: 'The text of the line; of a long line, the part around the match.' },
  start: { type: 'integer', description: 'The position of the first match in `text`, in characters from 0.' },
  end: { type: 'integer' },
  before: linesSchema,
  after: linesSchema,
})

export function searchInResourceTool(view: View): Tool {
  return {
    name: 'search_in_resource',
    title: 'Search in a resource',
    description:
      'Finds the lines of one resource that match a regular expression, with their numbers for read_resource, however large the resource is: a log, a table, source code, a document. To find a resource, use search_resources.',
    inputSchema: findInput,
    outputSchema: objectSchema(['uri', 'matches', 'lastLine'], {
      uri: { type: 'string', description: 'The URI whose lines are numbered.' },
      matches: { type: 'array', items: matchSchema },
      lastLine: { type: 'integer', description: 'The number of the last line that was searched.' },
      next: { type: 'string', description: 'The cursor for the rest. Absent at the end of the resource.' },
      notes: linesSchema,
    }),
    annotations: readOnlyHints,
    call: async (input, { signal }, report) => {
      const args = createArgumentReader(input, findInput)
      const cursor = args.text('cursor')
      // The library for patterns is large, and few servers need it.
      const { grep } = await import('../../text/grep.ts')
      const answer = await grep((uri, options) => view.read(uri, options), args.required('uri'), {
        pattern: args.required('pattern'),
        isLiteral: args.flag('literal'),
        ignoresCase: args.flag('ignore_case'),
        context: args.count('context', contexts),
        limit: args.count('limit', limits),
        from: args.count('from', firstLines),
        ...(cursor === undefined ? {} : { position: decodeCursor(cursor, positionIn) }),
        maxMs,
        report: report && ((line) => report({ progress: line, message: `Searched up to line ${line}` })),
        signal,
      })
      const { cutLines, next, ...found } = answer
      const notes =
        cutLines === 0
          ? []
          : [
              `Of ${cutLines === 1 ? 'one very long line' : `${cutLines} very long lines`}, only the beginning was searched.`,
            ]
      const { matches, lastLine } = found
      const rest = next && encodeCursor(next)
      const text = [
        ...(matches.length === 0 ? [`No line matches, up to line ${lastLine}.`] : matches.flatMap(formatMatchingLine)),
        ...notes,
        ...(rest === undefined ? [] : [`Lines from ${lastLine + 1} on were not searched: cursor ${rest}`]),
      ]
      return { text: text.join('\n'), structured: { ...found, ...defined({ next: rest }), notes } }
    },
  }
}

function positionIn(value: unknown): GrepPosition | undefined {
  const { uri, version, line, at, from } = objectOf(value)
  const isCount = (one: unknown): one is number => Number.isSafeInteger(one) && Number(one) >= 0
  if (typeof uri !== 'string' || !isCount(line) || !isCount(at) || !isCount(from)) return undefined
  return { uri, line, at, from, ...(typeof version === 'string' ? { version } : {}) }
}

function formatMatchingLine({ line, text, before = [], after = [] }: MatchingLine): readonly string[] {
  return [
    ...before.map((one, index) => `${line - before.length + index}-${one}`),
    `${line}:${text}`,
    ...after.map((one, index) => `${line + 1 + index}-${one}`),
    ...(before.length + after.length === 0 ? [] : ['--']),
  ]
}
