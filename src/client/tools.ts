import { defined } from '../core/kit/defined.ts'
import type { PromptContent } from '../core/view.ts'
import type { Link } from './connection.ts'
import type { RemoteTool, RemoteTools } from './target.ts'
import { blockOf, cursorOf, descriptionOf, listOf, metaOf, objectOf, textOf, type Wire } from './wire.ts'

export function createRemoteTools({ request }: Pick<Link, 'request'>): RemoteTools {
  return {
    list: async ({ cursor }, options) => {
      const answer = await request('tools/list', defined({ cursor }), options)
      const nextCursor = cursorOf(answer)
      return { items: listOf(answer, 'tools').flatMap(toolsOf), ...defined({ nextCursor }) }
    },
    call: async (name, given, options) => {
      const answer = await request('tools/call', { name, arguments: given }, options)
      const { content, structuredContent, isError } = answer
      const blocks = Array.isArray(content) ? content.flatMap((item) => blocksOf(objectOf(item))) : []
      const structured = isRecord(structuredContent) ? structuredContent : undefined
      return { content: blocks, ...defined({ structured }), failed: isError === true }
    },
  }
}

function blocksOf(wire: Wire): readonly PromptContent[] {
  const block = blockOf(wire)
  return block === undefined ? [] : [block]
}

/** Returns the tool, or nothing for one without a name, which cannot be called. */
function toolsOf(item: unknown): readonly RemoteTool[] {
  const wire = objectOf(item)
  const name = textOf(wire.name)
  if (name === undefined) return []
  const { title, description, icons } = descriptionOf(wire)
  const hints = objectOf(wire.annotations)
  const flag = (key: string) => (typeof hints[key] === 'boolean' ? hints[key] : undefined)
  const annotations = defined({
    readOnly: flag('readOnlyHint'),
    destructive: flag('destructiveHint'),
    idempotent: flag('idempotentHint'),
    openWorld: flag('openWorldHint'),
  })
  return [
    {
      name,
      ...defined({ title: title ?? textOf(hints.title), description, icons, meta: metaOf(wire) }),
      inputSchema: objectOf(wire.inputSchema),
      ...(isRecord(wire.outputSchema) ? { outputSchema: wire.outputSchema } : {}),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
  ]
}

function isRecord(value: unknown): value is Wire {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
