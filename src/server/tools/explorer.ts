import { argumentsIn, readOnly } from '../../core/arguments.ts'
import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import type { Tool, ToolApp } from '../../core/tool.ts'
import { directoryMimeType, type Resource, type View } from '../../core/view.ts'
import { lineOf, resourceSchema, shown } from './shown.ts'

/** Maximum number of entries of one directory in an answer. */
const maxEntries = 50
/** Maximum number of entries below one entry. */
const maxBelow = 20
/** Maximum number of directories that are opened below the first one. */
const maxOpened = 8

const input = {
  type: 'object',
  properties: {
    uri: { type: 'string', description: 'The URI of a directory or resource to begin at. Left out: everything.' },
  },
}

/** An entry of the tree, with what is directly in it where it was opened. */
interface Branch {
  readonly entry: Resource
  readonly below: readonly Resource[]
  readonly hasMore: boolean
}

/** `browse`: shows a person the explorer inside of the host. A host without apps shows the same places as text. */
export function explorerTool(view: View, app: ToolApp): Tool {
  return {
    name: 'browse',
    title: 'Browse resources',
    description:
      'Shows the person an explorer of the resources, in which they look around and pick what you shall know. Where the host shows no apps, it answers with the same places as text. To look for something yourself, take browse_directory or search_resources.',
    inputSchema: input,
    outputSchema: {
      type: 'object',
      properties: {
        uri: { type: 'string' },
        entries: { type: 'array', items: resourceSchema },
        more: { type: 'boolean', description: 'Whether there are more entries: browse_directory has them all.' },
      },
      required: ['entries', 'more'],
    },
    annotations: readOnly,
    app,
    call: async (given, { signal }) => {
      const uri = argumentsIn(given, input).text('uri')
      const { entries, hasMore } = uri === undefined ? await places(view, signal) : await placesIn(view, uri, signal)
      const branches = await opened(view, entries, signal)
      const lines = branches.flatMap((branch) => [
        lineOf(branch.entry),
        ...branch.below.map((entry) => `  ${lineOf(entry)}`),
        ...(branch.hasMore ? ['  - …'] : []),
      ])
      return {
        text: [
          lines.length === 0 ? 'Nothing is in it.' : lines.join('\n'),
          ...(hasMore ? ['', 'There are more: browse_directory has them all.'] : []),
        ].join('\n'),
        structured: { ...defined({ uri }), entries: entries.map(shown), more: hasMore },
      }
    },
  }
}

interface Entries {
  readonly entries: readonly Resource[]
  readonly hasMore: boolean
}

async function places(view: View, signal: AbortSignal): Promise<Entries> {
  const mounts = await view.mounts({ signal })
  return { entries: mounts.slice(0, maxEntries), hasMore: mounts.length > maxEntries }
}

/** The children of a directory; of a resource, the resource itself. */
async function placesIn(view: View, uri: string, signal: AbortSignal): Promise<Entries> {
  try {
    return first(await view.directory({ uri }, { signal }), maxEntries)
  } catch (error) {
    if (!isResourceError(error, 'invalid') || error.detail.reason !== 'not-a-directory') throw error
    const end = uri.lastIndexOf('/') + 1
    const beside = await view.directory({ uri: uri.slice(0, end) }, { signal }).catch((fault: unknown) => {
      if (isResourceError(fault)) return undefined
      throw fault
    })
    // In a directory of many pages, its facts are left out.
    const found = beside?.items.find((one) => one.uri === uri)
    return { entries: [found ?? { uri, name: uri.slice(end) }], hasMore: false }
  }
}

/** Opens the directories at the beginning. One that cannot be opened just now stays closed. */
function opened(view: View, entries: readonly Resource[], signal: AbortSignal): Promise<readonly Branch[]> {
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

function first(
  { items, nextCursor }: { readonly items: readonly Resource[]; readonly nextCursor?: string },
  most: number,
) {
  return { entries: items.slice(0, most), hasMore: items.length > most || nextCursor !== undefined }
}
