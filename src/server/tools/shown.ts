import { invalid } from '../../core/errors.ts'
import { defined, objectSchema } from '../../core/kit/object.ts'
import { metaKeys } from '../../core/meta.ts'
import type { JsonObject } from '../../core/tool.ts'
import { directoryMimeType, type Page, type Resource } from '../../core/view.ts'
import { oneLine, shorten } from '../../text/excerpt.ts'
import { formatIsoTime, isSendableTime } from '../messages/format.ts'

const maxDescription = 300

export const resourceSchema: JsonObject = objectSchema(['uri', 'name', 'type'], {
  uri: { type: 'string' },
  name: { type: 'string' },
  type: { type: 'string', enum: ['directory', 'resource'] },
  title: { type: 'string' },
  description: { type: 'string' },
  mimeType: { type: 'string' },
  size: { type: 'integer', description: 'The size in bytes.' },
  lastModified: { type: 'string' },
  _meta: { type: 'object', description: 'For a mount, the kind of its data.' },
})

export const cursorSchema = { type: 'string', description: 'The nextCursor of the previous answer.' }
export const limitSchema = (otherwise: number, most: number) => ({
  type: 'integer',
  minimum: 1,
  maximum: most,
  description: `Maximum number of results. By default ${otherwise}.`,
})

export function resourceForTool({
  uri,
  name,
  title,
  description,
  mimeType,
  size,
  modified,
  meta,
}: Resource): JsonObject {
  const kind = meta?.[metaKeys.kind]
  return {
    uri,
    name,
    type: mimeType === directoryMimeType ? 'directory' : 'resource',
    ...defined({ title }),
    ...(description === undefined ? {} : { description: shorten(description, maxDescription) }),
    ...(mimeType === undefined || mimeType === directoryMimeType ? {} : { mimeType }),
    ...defined({ size }),
    ...(isSendableTime(modified) ? { lastModified: formatIsoTime(modified) } : {}),
    ...(kind === undefined ? {} : { _meta: { [metaKeys.kind]: kind } }),
  }
}

export function formatResourceLine({ uri, name, title, mimeType, size }: Resource): string {
  const facts = [
    ...(mimeType === undefined ? [] : [mimeType === directoryMimeType ? 'directory' : mimeType]),
    ...(size === undefined ? [] : [`${size} bytes`]),
  ]
  const label = oneLine(title ?? name, 120)
  return `- ${uri}  ${label}${facts.length === 0 ? '' : `  (${facts.join(', ')})`}`
}

/** Maximum number of pages without an entry that are skipped for one answer. */
const maxEmpty = 20

/** Returns a part of a page of a view. The cursor consists of the cursor of the page and the URI of the last entry that was shown. */
export async function takePart(
  next: (cursor: string | undefined) => Promise<Page<Resource>>,
  cursor: string | undefined,
  limit: number,
): Promise<{ readonly items: readonly Resource[]; readonly nextCursor?: string }> {
  const position = cursor === undefined ? {} : decodeCursor(cursor, positionIn)
  let page = await next(position.page)
  let at = position.page
  for (let empty = 0; page.items.length === 0 && page.nextCursor !== undefined && empty < maxEmpty; empty++) {
    at = page.nextCursor
    page = await next(at)
  }
  const from = position.last === undefined ? 0 : page.items.findIndex(({ uri }) => uri === position.last) + 1
  const items = page.items.slice(from, from + limit)
  const isWhole = from + items.length >= page.items.length
  const last = items.at(-1)?.uri
  const nextCursor = isWhole
    ? page.nextCursor === undefined
      ? undefined
      : encodeCursor([page.nextCursor, null])
    : encodeCursor([at ?? null, last ?? null])
  return { items, ...defined({ nextCursor }) }
}

function positionIn(value: unknown): { readonly page?: string; readonly last?: string } | undefined {
  const [page, last] = value as readonly unknown[]
  const isText = (one: unknown) => one === null || typeof one === 'string'
  if (!isText(page) || !isText(last)) return undefined
  return { ...(typeof page === 'string' ? { page } : {}), ...(typeof last === 'string' ? { last } : {}) }
}

/** Returns a cursor of a tool: a value as JSON in base64url. */
export function encodeCursor(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/**
 * Returns the value that a cursor holds.
 *
 * @param parseValue Returns undefined, or throws, for a value that the tool has not put in.
 * @throws ResourceError `invalid` for a cursor that the tool has not given.
 */
export function decodeCursor<T>(cursor: string, parseValue: (value: unknown) => T | undefined): T {
  try {
    const value = parseValue(JSON.parse(Buffer.from(cursor, 'base64url').toString()))
    if (value !== undefined) return value
  } catch {
    // The error is thrown below.
  }
  throw invalid('"cursor" does not belong to this list. Begin again without it.', 'cursor')
}
