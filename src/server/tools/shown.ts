import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { JsonObject } from '../../core/tool.ts'
import { directoryMimeType, type Page, type Resource } from '../../core/view.ts'
import { oneLine, shorten } from '../../text/landmarks.ts'
import { formatTime, isTime } from '../protocol/format.ts'

/** Maximum length of a description in a list, in characters. */
const maxDescription = 300

export const resourceSchema: JsonObject = {
  type: 'object',
  properties: {
    uri: { type: 'string' },
    name: { type: 'string' },
    type: { type: 'string', enum: ['directory', 'resource'] },
    title: { type: 'string' },
    description: { type: 'string' },
    mimeType: { type: 'string' },
    size: { type: 'integer', description: 'Bytes.' },
    lastModified: { type: 'string' },
  },
  required: ['uri', 'name', 'type'],
}

export const cursorSchema = { type: 'string', description: 'nextCursor of the answer before.' }
export const limitSchema = (otherwise: number, most: number) => ({
  type: 'integer',
  minimum: 1,
  maximum: most,
  description: `How many at most. By default ${otherwise}.`,
})

/** Returns a resource as a tool shows it. */
export function shown({ uri, name, title, description, mimeType, size, modified }: Resource): JsonObject {
  return {
    uri,
    name,
    type: mimeType === directoryMimeType ? 'directory' : 'resource',
    ...defined({ title }),
    ...(description === undefined ? {} : { description: shorten(description, maxDescription) }),
    ...(mimeType === undefined || mimeType === directoryMimeType ? {} : { mimeType }),
    ...defined({ size }),
    ...(isTime(modified) ? { lastModified: formatTime(modified) } : {}),
  }
}

/** Returns a resource on one line. */
export function lineOf({ uri, name, title, mimeType, size }: Resource): string {
  const facts = [
    ...(mimeType === undefined ? [] : [mimeType === directoryMimeType ? 'directory' : mimeType]),
    ...(size === undefined ? [] : [`${size} bytes`]),
  ]
  const label = oneLine(title ?? name, 120)
  return `- ${uri}  ${label}${facts.length === 0 ? '' : `  (${facts.join(', ')})`}`
}

/** Maximum number of pages without an entry that are skipped for one answer. */
const maxEmpty = 20

/**
 * Returns a part of a page of a view, since pages are longer than a model needs at once. The cursor consists of that of the page
 * and of the last URI shown.
 */
export async function take(
  next: (cursor: string | undefined) => Promise<Page<Resource>>,
  cursor: string | undefined,
  limit: number,
): Promise<{ readonly items: readonly Resource[]; readonly nextCursor?: string; readonly first: boolean }> {
  const position = openCursor(cursor)
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
      : sealCursor(page.nextCursor, undefined)
    : sealCursor(at, last)
  return { items, first: cursor === undefined, ...defined({ nextCursor }) }
}

function sealCursor(page: string | undefined, last: string | undefined): string {
  return Buffer.from(JSON.stringify([page ?? null, last ?? null])).toString('base64url')
}

function openCursor(cursor: string | undefined): { readonly page?: string; readonly last?: string } {
  if (cursor === undefined) return {}
  try {
    const [page, last] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as readonly unknown[]
    const isText = (value: unknown) => value === null || typeof value === 'string'
    if (isText(page) && isText(last))
      return { ...(typeof page === 'string' ? { page } : {}), ...(typeof last === 'string' ? { last } : {}) }
  } catch {
    // The error is thrown below.
  }
  throw invalid('cursor: It is not one that this tool gave. Begin without one.', 'cursor')
}
