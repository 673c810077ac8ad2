import { fallbackTo, isResourceError } from '../../core/errors.ts'
import { defined, objectSchema } from '../../core/kit/object.ts'
import { createArgumentReader, readOnlyHints, type Tool, type ToolApp } from '../../core/tool.ts'
import { type ChangedResource, directoryMimeType, type Page, type Resource, type View } from '../../core/view.ts'
import { oneLine, shorten } from '../../text/excerpt.ts'
import { searchInResourceTool } from './find.ts'
import { readTool } from './read.ts'
import { searchTool } from './search.ts'
import { cursorSchema, formatResourceLine, limitSchema, resourceForTool, resourceSchema, takePart } from './shown.ts'

export { connectorTools } from './connector.ts'

/**
 * Returns tools for reading, for hosts without resources. They use the view, so its access rules apply.
 *
 * @param explorer The explorer as an app: with it comes the tool `browse`.
 */
export function resourceTools(view: View, explorer?: ToolApp): readonly Tool[] {
  return [
    ...[listTool(view), browseTool(view), readTool(view), searchInResourceTool(view), searchTool(view)],
    ...(explorer === undefined ? [] : [explorerTool(view, explorer)]),
  ]
}

/** Maximum number of entries of one directory in an answer. */
const maxEntries = 50
/** Maximum number of children that are shown of one of these entries. */
const maxBelow = 20
/** Maximum number of these entries whose children are shown. */
const maxOpened = 8

const input = objectSchema([], {
  uri: { type: 'string', description: 'The URI of a directory or resource to begin at. By default everything.' },
})

function explorerTool(view: View, app: ToolApp): Tool {
  return {
    name: 'browse',
    title: 'Browse resources',
    description:
      'Shows the person an explorer of the resources, in which they browse and pick resources for you. If the host shows no apps, it answers with the same directories as text. To look for something yourself, use browse_directory or search_resources.',
    inputSchema: input,
    outputSchema: objectSchema(['entries', 'more'], {
      uri: { type: 'string' },
      entries: { type: 'array', items: resourceSchema },
      more: { type: 'boolean', description: 'Whether there are more entries: browse_directory has them all.' },
    }),
    annotations: readOnlyHints,
    app,
    call: async (documentInput, { signal }) => {
      const uri = createArgumentReader(documentInput, input).text('uri')
      const { entries, hasMore } =
        uri === undefined
          ? first({ items: await view.mounts({ signal }) }, maxEntries)
          : await listChildrenOrSelf(view, uri, signal)
      const branches = await opened(view, entries, signal)
      const lines = branches.flatMap((branch) => [
        formatResourceLine(branch.entry),
        ...branch.below.map((entry) => `  ${formatResourceLine(entry)}`),
        ...(branch.hasMore ? ['  - …'] : []),
      ])
      return {
        text: [
          lines.length === 0 ? 'There are no entries here.' : lines.join('\n'),
          ...(hasMore ? ['', 'There are more: browse_directory has them all.'] : []),
        ].join('\n'),
        structured: { ...defined({ uri }), entries: entries.map(resourceForTool), more: hasMore },
      }
    },
  }
}

/** The children of a directory; of a resource, the resource itself. */
async function listChildrenOrSelf(view: View, uri: string, signal: AbortSignal) {
  try {
    return first(await view.directory({ uri }, { signal }), maxEntries)
  } catch (error) {
    if (!isResourceError(error, 'invalid') || error.detail.reason !== 'not-a-directory') throw error
    const end = uri.lastIndexOf('/') + 1
    const beside = await view.directory({ uri: uri.slice(0, end) }, { signal }).catch(fallbackTo(undefined))
    // If the first page of the directory does not list the resource, its facts are left out.
    const resource = beside?.items.find((one) => one.uri === uri)
    return { entries: [resource ?? { uri, name: uri.slice(end) }], hasMore: false }
  }
}

/** Returns each entry, the first directories with their direct children. */
function opened(view: View, entries: readonly Resource[], signal: AbortSignal) {
  const toOpen = new Set(entries.filter(({ mimeType }) => mimeType === directoryMimeType).slice(0, maxOpened))
  return Promise.all(
    entries.map(async (entry) => {
      const closed = { entry, below: [], hasMore: false }
      if (!toOpen.has(entry)) return closed
      try {
        const { entries: below, hasMore } = first(await view.directory({ uri: entry.uri }, { signal }), maxBelow)
        return { entry, below, hasMore }
      } catch (error) {
        signal.throwIfAborted()
        if (!isResourceError(error)) throw error
        return closed
      }
    }),
  )
}

function first({ items, nextCursor }: Pick<Page<Resource>, 'items' | 'nextCursor'>, most: number) {
  return { entries: items.slice(0, most), hasMore: items.length > most || nextCursor !== undefined }
}

const limits = { least: 1, most: 200, otherwise: 50 }
/** Maximum number of templates in the first answer. */
const maxTemplates = 50

const templateSchema = objectSchema(['uriTemplate', 'name'], {
  uriTemplate: { type: 'string' },
  name: { type: 'string' },
  description: { type: 'string' },
  mimeType: { type: 'string' },
})

const listInput = objectSchema([], { cursor: cursorSchema, limit: limitSchema(limits.otherwise, limits.most) })

function listTool(view: View): Tool {
  return {
    name: 'list_resources',
    title: 'List resources',
    description:
      'Lists the resources that can be read, in pages: documents, source files, tables and whatever else is served here. There may be very many: browse_directory lists one directory, and search_resources finds by words.',
    inputSchema: listInput,
    outputSchema: objectSchema(['resources'], {
      resources: { type: 'array', items: resourceSchema },
      templates: { type: 'array', items: templateSchema },
      moreTemplates: { type: 'boolean', description: 'True if there are more templates than are shown.' },
      nextCursor: { type: 'string' },
    }),
    annotations: readOnlyHints,
    call: async (input, { signal }) => {
      const args = createArgumentReader(input, listInput)
      const limit = args.count('limit', limits)
      const cursor = args.text('cursor')
      const { items, nextCursor } = await takePart(
        (at) => view.list(at === undefined ? {} : { cursor: at }, { signal }),
        cursor,
        limit,
      )
      const page = cursor === undefined ? await view.templates({}, { signal }) : undefined
      const templates = page?.items.slice(0, maxTemplates) ?? []
      const hasMore = (page?.items.length ?? 0) > maxTemplates || page?.nextCursor !== undefined
      const lines = [
        ...(items.length === 0 ? ['There are no resources here.'] : items.map(formatResourceLine)),
        ...(templates.length === 0 ? [] : ['', 'URIs can also be made of these templates:']),
        ...templates.map(({ uriTemplate, name, title }) => `- ${uriTemplate}  ${oneLine(title ?? name, 120)}`),
        ...(hasMore ? [`(Only the first ${maxTemplates} templates are shown.)`] : []),
        ...(nextCursor === undefined ? [] : ['', `There are more: cursor ${nextCursor}`]),
      ]
      return {
        text: lines.join('\n'),
        structured: {
          resources: items.map(resourceForTool),
          ...(templates.length === 0
            ? {}
            : {
                templates: templates.map(({ uriTemplate, name, description, mimeType }) => ({
                  uriTemplate,
                  name,
                  ...(description === undefined ? {} : { description: shorten(description, 300) }),
                  ...defined({ mimeType }),
                })),
              }),
          ...(hasMore ? { moreTemplates: true } : {}),
          ...defined({ nextCursor }),
        },
      }
    },
  }
}

const browseInput = objectSchema([], {
  uri: { type: 'string', description: 'The URI of a directory. By default the mounts.' },
  cursor: cursorSchema,
  limit: limitSchema(limits.otherwise, limits.most),
})

function browseTool(view: View): Tool {
  return {
    name: 'browse_directory',
    title: 'Browse a directory',
    description:
      'Lists the directories and resources directly in a directory, in pages. Without a uri it lists the mounts.',
    inputSchema: browseInput,
    outputSchema: objectSchema(['entries'], {
      uri: { type: 'string' },
      entries: { type: 'array', items: resourceSchema },
      nextCursor: { type: 'string' },
    }),
    annotations: readOnlyHints,
    call: async (input, { signal }) => {
      const args = createArgumentReader(input, browseInput)
      const limit = args.count('limit', limits)
      const uri = args.text('uri')
      const cursor = args.text('cursor')
      const { items, nextCursor } = await takePart(
        async (at) =>
          uri === undefined
            ? { items: await view.mounts({ signal }), cache: { ttlMs: 0, scope: 'private' } }
            : view.directory({ uri, ...defined({ cursor: at }) }, { signal }),
        cursor,
        limit,
      )
      const lines = [
        ...(items.length === 0 ? ['There are no entries here.'] : items.map(formatResourceLine)),
        ...(nextCursor === undefined ? [] : ['', `There are more: cursor ${nextCursor}`]),
      ]
      return {
        text: lines.join('\n'),
        structured: {
          ...defined({ uri }),
          entries: items.map(resourceForTool),
          ...defined({ nextCursor }),
        },
      }
    },
  }
}

const changedLimits = { least: 1, most: 1000, otherwise: 100 }

const changedInput = objectSchema([], {
  since: {
    type: 'string',
    description: 'The `since` of an earlier answer. Without it, the answer only names the current state.',
  },
  uri: { type: 'string', description: 'Only resources at or below this URI.' },
  limit: limitSchema(changedLimits.otherwise, changedLimits.most),
})

const changedSchema = {
  type: 'array',
  items: objectSchema(['uri'], {
    uri: { type: 'string' },
    version: { type: 'string' },
    before: { type: 'string', description: 'The version at the earlier time.' },
  }),
}

/** `what_changed`: the resources that were created, updated and deleted since an earlier call. None for a view that cannot tell. */
export function changedTools(view: View): readonly Tool[] {
  const { changed } = view
  return changed === undefined ? [] : [changedTool(changed)]
}

function changedTool(findChanges: NonNullable<View['changed']>): Tool {
  return {
    name: 'what_changed',
    title: 'Changes since an earlier call',
    description:
      'Lists the resources that were created, updated or deleted since an earlier call, each with its version. Call it once without arguments, and later with the `since` of the answer. read_resource with a version shows what is different in a text.',
    inputSchema: changedInput,
    outputSchema: objectSchema(['since', 'unknown', 'created', 'updated', 'deleted'], {
      since: { type: 'string', description: 'The name of the current state: the value of `since` for the next call.' },
      unknown: { type: 'boolean', description: 'Whether the earlier state is too old or unknown.' },
      created: changedSchema,
      updated: changedSchema,
      deleted: changedSchema,
      more: { type: 'integer', description: 'The number of changes that are left out.' },
      unversioned: {
        type: 'integer',
        description: 'The number of resources of which it is not known whether they changed.',
      },
      unavailable: { type: 'array', items: { type: 'string' } },
    }),
    annotations: readOnlyHints,
    call: async (input, { signal }) => {
      const args = createArgumentReader(input, changedInput)
      const since = args.text('since', 100)
      const query = { ...defined({ since, uri: args.text('uri') }), limit: args.count('limit', changedLimits) }
      const resources = await findChanges(query, { signal })
      const linesOf = (word: string, some: readonly ChangedResource[]) => some.map(({ uri }) => `- ${word}  ${uri}`)
      const lines = [
        ...linesOf('created', resources.created),
        ...linesOf('updated', resources.updated),
        ...linesOf('deleted', resources.deleted),
      ]
      const text = [
        ...(resources.unknown
          ? ['The earlier state is too old or unknown: the changes since then are not known.']
          : []),
        ...(lines.length > 0 ? lines : since === undefined || resources.unknown ? [] : ['Nothing has changed.']),
        ...(resources.more === 0
          ? []
          : [`Further changes are left out (${resources.more}): ask for more, or for one uri.`]),
        ...(resources.unversioned === 0
          ? []
          : [`Resources of which it is not known whether they changed: ${resources.unversioned}.`]),
        ...resources.unavailable.map((address) => `${address} does not answer now: its changes are reported later.`),
        `For the next call: since ${resources.since}`,
      ]
      return { text: text.join('\n'), structured: { ...resources } }
    },
  }
}
