import { argumentsIn, readOnly } from '../../core/arguments.ts'
import { defined } from '../../core/kit/defined.ts'
import type { Tool } from '../../core/tool.ts'
import type { View } from '../../core/view.ts'
import { oneLine, shorten } from '../../text/one-line.ts'
import { cursorSchema, limitSchema, lineOf, resourceSchema, shown, take } from './shown.ts'

const limits = { least: 1, most: 200, otherwise: 50 }
/** Maximum number of templates in the first answer. */
const maxTemplates = 50

const templateSchema = {
  type: 'object',
  properties: {
    uriTemplate: { type: 'string' },
    name: { type: 'string' },
    description: { type: 'string' },
    mimeType: { type: 'string' },
  },
  required: ['uriTemplate', 'name'],
}

const listInput = {
  type: 'object',
  properties: { cursor: cursorSchema, limit: limitSchema(limits.otherwise, limits.most) },
}

/** `list_resources`: all resources, in pages; the first page also has the templates for URIs that are not listed. */
export function listTool(view: View): Tool {
  return {
    name: 'list_resources',
    title: 'List resources',
    description:
      'Lists the resources that can be read, in pages: documents, source files, tables and whatever else is served here. There may be very many: browse_directory looks at one place, and search_resources finds by words.',
    inputSchema: listInput,
    outputSchema: {
      type: 'object',
      properties: {
        resources: { type: 'array', items: resourceSchema },
        templates: { type: 'array', items: templateSchema },
        nextCursor: { type: 'string' },
      },
      required: ['resources'],
    },
    annotations: readOnly,
    call: async (given, { signal }) => {
      const args = argumentsIn(given, listInput)
      const limit = args.count('limit', limits)
      const cursor = args.text('cursor')
      const { items, nextCursor } = await take(
        (at) => view.list(at === undefined ? {} : { cursor: at }, { signal }),
        cursor,
        limit,
      )
      const templates = cursor === undefined ? (await view.templates({}, { signal })).items.slice(0, maxTemplates) : []
      const lines = [
        ...(items.length === 0 ? ['There are no resources here.'] : items.map(lineOf)),
        ...(templates.length === 0 ? [] : ['', 'URIs can also be made of these templates:']),
        ...templates.map(({ uriTemplate, name, title }) => `- ${uriTemplate}  ${oneLine(title ?? name, 120)}`),
        ...(nextCursor === undefined ? [] : ['', `There are more: cursor ${nextCursor}`]),
      ]
      return {
        text: lines.join('\n'),
        structured: {
          resources: items.map(shown),
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
          ...defined({ nextCursor }),
        },
      }
    },
  }
}

const browseInput = {
  type: 'object',
  properties: {
    uri: { type: 'string', description: 'The URI of a directory. Left out: the places that there are.' },
    cursor: cursorSchema,
    limit: limitSchema(limits.otherwise, limits.most),
  },
}

/** `browse_directory`: the direct children of a directory. */
export function browseTool(view: View): Tool {
  return {
    name: 'browse_directory',
    title: 'Browse a directory',
    description:
      'Shows what is directly in a directory: directories and resources, in pages. Without a uri it shows where to begin.',
    inputSchema: browseInput,
    outputSchema: {
      type: 'object',
      properties: {
        uri: { type: 'string' },
        entries: { type: 'array', items: resourceSchema },
        nextCursor: { type: 'string' },
      },
      required: ['entries'],
    },
    annotations: readOnly,
    call: async (given, { signal }) => {
      const args = argumentsIn(given, browseInput)
      const limit = args.count('limit', limits)
      const uri = args.text('uri')
      const cursor = args.text('cursor')
      const { items, nextCursor } = await take(
        async (at) =>
          uri === undefined
            ? { items: await view.mounts({ signal }), cache: { ttlMs: 0, scope: 'private' } }
            : view.directory({ uri, ...defined({ cursor: at }) }, { signal }),
        cursor,
        limit,
      )
      const lines = [
        ...(items.length === 0 ? ['Nothing is in it.'] : items.map(lineOf)),
        ...(nextCursor === undefined ? [] : ['', `There are more: cursor ${nextCursor}`]),
      ]
      return {
        text: lines.join('\n'),
        structured: {
          ...defined({ uri }),
          entries: items.map(shown),
          ...defined({ nextCursor }),
        },
      }
    },
  }
}
