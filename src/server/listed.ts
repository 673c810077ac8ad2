import { metaKeys } from '../core/meta.ts'
import type { Page, Resource } from '../core/view.ts'
import { formatTime, isTime } from './protocol/format.ts'
import { escapeLineEnds } from './protocol/json.ts'
import { type JsonText, jsonTextKey } from './protocol/json-parts.ts'
import { type Revision, since } from './protocol/revisions.ts'
import { isMimeType, resourcesToWire, resourceToWire } from './protocol/wire.ts'

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
