import { createHash } from 'node:crypto'
import type { Context } from './call.ts'
import { digestVersion } from './earlier.ts'
import type { Entry } from './entry.ts'
import { isResourceError } from './errors.ts'
import { defined } from './kit/object.ts'
import type { Mounted } from './mount.ts'
import { baseName } from './path.ts'
import type { Page, ReadResult, Resource, ResourceContent, ResourceState } from './view.ts'
import { directoryMimeType } from './view.ts'

/**
 * Age of the last change below which the version of a source is not used, in milliseconds: two writes within one tick of a clock can have
 * the same version. The longest tick is that of FAT, two seconds.
 */
const settledMs = 2500
const maxPages = 100

interface Located {
  readonly mount: Mounted
  readonly path: string
  readonly uri: string
  readonly hasQuery: boolean
}

interface Reading {
  read(uri: string): Promise<ReadResult>
  directory(cursor: string | undefined): Promise<Page<Resource>>
}

/**
 * Returns the state of a resource or directory. The version of a resource is that of the source if it cannot be the one of another state,
 * or else a digest of the content; the version of a directory is a digest of the names in it.
 *
 * @throws ResourceError `not-found` for a missing or denied one.
 */
export async function statResource(
  { mount, path, uri, hasQuery }: Located,
  { read, directory }: Reading,
  context: Context,
): Promise<ResourceState> {
  const entry = hasQuery || path.endsWith('/') ? undefined : await mount.find(path, context)
  if (entry !== undefined && !entry.path.endsWith('/') && entry.mimeType !== directoryMimeType) {
    const resource = { ...mount.resourceOf(entry), uri }
    const version = steadyVersion(entry) ?? contentVersion((await read(uri)).contents)
    return { resource, version, cache: mount.cache }
  }
  try {
    if (!hasQuery) return await statDirectory(mount, path, uri, directory)
  } catch (error) {
    const isMissing = isResourceError(error, 'not-found') || isResourceError(error, 'invalid')
    if (!isMissing) throw error
  }
  // Some resources can be read although nothing lists them, such as a file of an older commit.
  const { contents, cache } = await read(uri)
  const [content] = contents
  const { mimeType, size, title } = content ?? {}
  const resource = { uri, name: content?.name ?? (baseName(path) || mount.name), ...defined({ title, mimeType, size }) }
  return { resource, version: contentVersion(contents), cache }
}

/** The version of a listed entry; undefined if another state may have it too. */
export function steadyVersion({ version, modified }: Pick<Entry, 'version' | 'modified'>): string | undefined {
  const isSettled = modified === undefined || Math.abs(Date.now() - modified) > settledMs
  return isSettled ? version : undefined
}

function contentVersion(contents: readonly ResourceContent[]): string {
  const [content, ...others] = contents
  if (others.length === 0 && content !== undefined && 'text' in content)
    return digestVersion(content.text.toWellFormed())
  const hash = createHash('sha256')
  for (const one of contents) {
    hash.update(JSON.stringify([one.uri, one.mimeType, one.version]))
    if ('text' in one) hash.update(one.text)
    else if ('bytes' in one) hash.update(one.bytes)
  }
  return `sha256.${hash.digest('base64url').slice(0, 27)}`
}

async function statDirectory(
  mount: Mounted,
  path: string,
  uri: string,
  directory: Reading['directory'],
): Promise<ResourceState> {
  const hash = createHash('sha256')
  let cursor: string | undefined
  for (let pages = 0; pages < maxPages; pages++) {
    const { items, nextCursor } = await directory(cursor)
    for (const item of items) hash.update(`${item.uri}\n`)
    cursor = nextCursor
    if (cursor === undefined) break
  }
  const name = path === '' ? mount.name : baseName(path.replace(/\/$/, ''))
  return {
    resource: { ...(path === '' ? mount.root : {}), uri, name, mimeType: directoryMimeType },
    version: `sha256.${hash.digest('base64url').slice(0, 27)}`,
    cache: mount.cache,
  }
}
