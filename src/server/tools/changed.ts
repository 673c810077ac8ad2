import { defined, objectSchema } from '../../core/kit/object.ts'
import { argumentsIn, readOnly, type Tool } from '../../core/tool.ts'
import type { ChangedResource, View } from '../../core/view.ts'
import { limitSchema } from './shown.ts'

const limits = { least: 1, most: 1000, otherwise: 100 }

const input = objectSchema([], {
  since: {
    type: 'string',
    description: 'The `since` of an earlier answer. Without it, the answer only names the state of now.',
  },
  uri: { type: 'string', description: 'Only resources at or below this URI.' },
  limit: limitSchema(limits.otherwise, limits.most),
})

const changes = {
  type: 'array',
  items: objectSchema(['uri'], {
    uri: { type: 'string' },
    version: { type: 'string' },
    before: { type: 'string', description: 'The version at the earlier time.' },
  }),
}

/** `what_changed`: the resources that were created, updated and deleted since an earlier call. */
export function changedTool(view: View, changed: NonNullable<View['changed']>): Tool {
  return {
    name: 'what_changed',
    title: 'What changed',
    description:
      'Lists the resources that were created, updated or deleted since an earlier call, each with its version. Call it once without arguments, and later with the `since` of the answer. read_resource with a version shows what is different in a text.',
    inputSchema: input,
    outputSchema: objectSchema(['since', 'unknown', 'created', 'updated', 'deleted'], {
      since: { type: 'string', description: 'Names the state of now, for the next call.' },
      unknown: { type: 'boolean', description: 'Whether the earlier state is too old or unknown.' },
      created: changes,
      updated: changes,
      deleted: changes,
      more: { type: 'integer', description: 'The number of changes that are left out.' },
      unversioned: { type: 'integer', description: 'The number of resources whose changes cannot be told.' },
      unavailable: { type: 'array', items: { type: 'string' } },
    }),
    annotations: readOnly,
    call: async (given, { signal }) => {
      const args = argumentsIn(given, input)
      const since = args.text('since', 100)
      const query = { ...defined({ since, uri: args.text('uri') }), limit: args.count('limit', limits) }
      const found = await changed.call(view, query, { signal })
      const linesOf = (word: string, some: readonly ChangedResource[]) => some.map(({ uri }) => `- ${word}  ${uri}`)
      const lines = [
        ...linesOf('created', found.created),
        ...linesOf('updated', found.updated),
        ...linesOf('deleted', found.deleted),
      ]
      const text = [
        ...(found.unknown
          ? ['The earlier state is too old or unknown: nothing can be told of the time since then.']
          : []),
        ...(lines.length > 0 ? lines : since === undefined || found.unknown ? [] : ['Nothing has changed.']),
        ...(found.more === 0 ? [] : [`${found.more} more changes are left out: ask for more, or for one uri.`]),
        ...(found.unversioned === 0 ? [] : [`Changes of ${found.unversioned} resources cannot be told.`]),
        ...found.unavailable.map((address) => `${address} does not answer now: its changes are told later.`),
        `For the next call: since ${found.since}`,
      ]
      return { text: text.join('\n'), structured: { ...found } }
    },
  }
}
