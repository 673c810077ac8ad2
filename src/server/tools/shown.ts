import { invalid } from '../../core/errors.ts'
import { defined, objectSchema } from '../../core/kit/object.ts'
import { metaKeys } from '../../core/meta.ts'
import type { JsonObject } from '../../core/tool.ts'
import { directoryMimeType, type Page, type Resource } from '../../core/view.ts'
import { oneLine, shorten } from '../../text/excerpt.ts'
import { formatTime, isTime } from '../protocol/format.ts'
import { escapeLineEnds } from '../protocol/json.ts'
import { type JsonText, jsonTextKey } from '../protocol/json-parts.ts'
import { type Revision, since } from '../protocol/revisions.ts'
import { isMimeType, resourcesToWire, resourceToWire } from '../protocol/wire.ts'

/** Maximum length of a description in a list, in characters. */
const maxDescription = 300

export const resourceSchema: JsonObject = objectSchema(['uri', 'name', 'type'], {
  uri: { type: 'string' },
  name: { type: 'string' },
  type: { type: 'string', enum: ['directory', 'resource'] },
  title: { type: 'string' },
  description: { type: 'string' },
  mimeType: { type: 'string' },
  size: { type: 'integer', description: 'Bytes.' },
  lastModified: { type: 'string' },
})

export const cursorSchema = { type: 'string', description: 'The nextCursor of the previous answer.' }
export const limitSchema = (otherwise: number, most: number) => ({
  type: 'integer',
  minimum: 1,
  maximum: most,
  description: `Maximum number. By default ${otherwise}.`,
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
): Promise<{ readonly items: readonly Resource[]; readonly nextCursor?: string }> {
  const position = cursor === undefined ? {} : openCursor(cursor, positionIn)
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
      : sealCursor([page.nextCursor, null])
    : sealCursor([at ?? null, last ?? null])
  return { items, ...defined({ nextCursor }) }
}

function positionIn(value: unknown): { readonly page?: string; readonly last?: string } | undefined {
  const [page, last] = value as readonly unknown[]
  const isText = (one: unknown) => one === null || typeof one === 'string'
  if (!isText(page) || !isText(last)) return undefined
  return { ...(typeof page === 'string' ? { page } : {}), ...(typeof last === 'string' ? { last } : {}) }
}

/** Returns a cursor that holds a value as JSON. */
export function sealCursor(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/**
 * Returns the value that a cursor holds.
 *
 * @param read Returns undefined, or throws, for a value that the tool has not put in.
 * @throws ResourceError `invalid` for a cursor that the tool has not given.
 */
export function openCursor<T>(cursor: string, read: (value: unknown) => T | undefined): T {
  try {
    const value = read(JSON.parse(Buffer.from(cursor, 'base64url').toString()))
    if (value !== undefined) return value
  } catch {
    // The error is thrown below.
  }
  throw invalid('cursor: It is not one that this tool gave. Begin without one.', 'cursor')
}

/** Number of resources that are joined to one text, and time for which they are written before other requests get their turn, in milliseconds. */
const [groupLength, sliceMs] = [128, 4]

/** A text that JSON writes as it is, between quotation marks. */
const plain = /^[ !#-[\]-~]*$/

/** How a member of `_meta` with the version of a resource begins. */
const versionHead = `,"_meta":{${JSON.stringify(metaKeys.version)}:"`

/**
 * Returns the same as {@link resourcesToWire}, with the resources as a text that has the same bytes. It makes no object for each
 * of them, which is faster than `JSON.stringify`. A page is written in turns with other requests.
 */
export async function resourcesToText(
  page: Page<Resource>,
  revision: Revision,
  mounts?: readonly Resource[],
): Promise<Record<string, unknown>> {
  const pieces: Buffer[] = []
  let since = performance.now()
  for (let from = 0; from < page.items.length; from += groupLength) {
    const until = Math.min(page.items.length, from + groupLength)
    let group = ''
    for (let at = from; at < until; at++) {
      const resource = page.items[at]
      if (resource === undefined) continue
      if (at > from) group += ','
      group += resourceToText(resource, revision)
    }
    pieces.push(Buffer.from(group))
    if (performance.now() - since > sliceMs) {
      await new Promise((resolve) => setImmediate(resolve))
      since = performance.now()
    }
  }
  const plainly = () => page.items.map((resource) => resourceToWire(resource, revision))
  const resources: JsonText = { [jsonTextKey]: pieces, toJSON: plainly }
  return { ...resourcesToWire({ ...page, items: [] }, revision, mounts), resources }
}

let lastType = ''

/** Whether a media type can be written as it is. Most resources of a page have the type of the one before. */
function isPlainType(type: string): boolean {
  if (type === lastType) return true
  if (!isMimeType(type) || !plain.test(type)) return false
  lastType = type
  return true
}

/** Writes a resource as JSON: directly, if it has the facts of a file and nothing in them has to be escaped. */
function resourceToText(resource: Resource, revision: Revision): string {
  const { uri, name, mimeType, size, modified, version } = resource
  if (
    hasTexts(resource) ||
    size === undefined ||
    !Number.isSafeInteger(size) ||
    size < 0 ||
    !plain.test(uri) ||
    // A URI that is plain ends in a plain name.
    !(uri.endsWith(name) || plain.test(name)) ||
    (mimeType !== undefined && !isPlainType(mimeType)) ||
    (version !== undefined && !plain.test(version))
  )
    return escapeLineEnds(JSON.stringify(resourceToWire(resource, revision)))
  const isNew = since(revision, '2025-06-18')
  const type = mimeType === undefined ? '' : `,"mimeType":"${mimeType}"`
  const time = isNew && isTime(modified) ? `,"annotations":{"lastModified":"${formatTime(modified)}"}` : ''
  const meta = isNew && version !== undefined ? `${versionHead}${version}"}` : ''
  return `{"uri":"${uri}","name":"${name}"${type}${time},"size":${size}${meta}}`
}

/** Whether a resource has any member besides those of a file. */
function hasTexts({ title, description, audience, priority, icons, meta }: Resource): boolean {
  return (
    title !== undefined ||
    description !== undefined ||
    audience !== undefined ||
    priority !== undefined ||
    icons !== undefined ||
    meta !== undefined
  )
}
