import { contentLength } from '../../core/entry.ts'
import { isResourceError, valueOr } from '../../core/errors.ts'
import { iteratePages } from '../../core/kit/groups.ts'
import { defined } from '../../core/kit/object.ts'
import { compileTemplate } from '../../core/template.ts'
import { comparableUri } from '../../core/uri.ts'
import { directoryMimeType, type Resource, type ResourceTemplate, type View } from '../../core/view.ts'

export interface StatResult {
  readonly resource: Resource
  readonly mount?: Resource
  readonly children?: { readonly directories: number; readonly resources: number; readonly complete: boolean }
  /** Whether a listing contains the resource. Other resources can be read by their URIs alone. */
  readonly listed: boolean
  readonly watchable: boolean
  readonly templates: readonly (Pick<ResourceTemplate, 'uriTemplate' | 'name'> & {
    readonly values: Readonly<Record<string, string>>
  })[]
}

const maxCounted = 10_000

/** Returns `undefined` if the URI does not exist, or is denied. */
export async function statUri(view: View, uri: string): Promise<StatResult | undefined> {
  const mounts = await view.mounts()
  const mount = mounts.find((one) => isAtOrBelow(uri, one.uri))
  const listedResource = await listedAs(view, uri, mounts)
  const listed =
    listedResource !== undefined && mounts.includes(listedResource)
      ? await resourceOfMount(view, listedResource)
      : listedResource
  const children = listed === undefined || isDirectory(listed) ? await countChildren(view, uri) : undefined
  const templates = await templatesFor(view, uri)
  const resource =
    listed ??
    (children === undefined ? await readAs(view, uri) : { uri, name: mount?.name ?? uri, mimeType: directoryMimeType })
  if (resource === undefined) return undefined
  return {
    // The listing may spell the URI differently.
    resource,
    ...defined({ mount, children }),
    listed: listed !== undefined,
    watchable: await isWatchable(view, uri),
    templates,
  }
}

/** For a mount of a single resource, metadata from a read of the resource is added. */
export async function resourceOfMount(view: View, mount: Resource): Promise<Resource> {
  try {
    const { items, nextCursor } = await view.directory({ uri: mount.uri })
    if (items.length > 0 || nextCursor !== undefined) return mount
    const resource = await readAs(view, mount.uri)
    if (resource?.mimeType === undefined || resource.mimeType === directoryMimeType) return mount
    return { ...resource, ...mount, mimeType: resource.mimeType }
  } catch {
    return mount
  }
}

/** Whether a URI is listed, is a directory, or can be read. */
export async function existsAt(view: View, uri: string): Promise<boolean> {
  if ((await listedAs(view, uri, await view.mounts())) !== undefined) return true
  try {
    const { items, nextCursor } = await view.directory({ uri })
    if (items.length > 0 || nextCursor !== undefined) return true
  } catch (error) {
    if (!isResourceError(error, 'not-found') && !isResourceError(error, 'invalid')) throw error
  }
  return (await readAs(view, uri)) !== undefined
}

async function listedAs(view: View, uri: string, mounts: readonly Resource[]): Promise<Resource | undefined> {
  const mount = mounts.find((one) => isSameUri(one.uri, uri))
  if (mount !== undefined) return mount
  if (/[?#]/.test(uri)) return undefined
  const parent = uri.replace(/\/+$/, '').replace(/[^/]+$/, '')
  return inDirectory(view, parent, uri)
}

async function inDirectory(view: View, parent: string, uri: string): Promise<Resource | undefined> {
  try {
    for await (const { items } of iteratePages((query) => view.directory({ uri: parent, ...query }))) {
      const resource = items.find((item) => isSameUri(item.uri, uri))
      if (resource !== undefined) return resource
    }
  } catch (error) {
    if (!isResourceError(error, 'not-found') && !isResourceError(error, 'invalid')) throw error
  }
  return undefined
}

async function countChildren(view: View, uri: string): Promise<StatResult['children']> {
  const counts = { directories: 0, resources: 0 }
  try {
    for await (const { items } of iteratePages((query) => view.directory({ uri, ...query }))) {
      const directories = items.filter(isDirectory).length
      counts.directories += directories
      counts.resources += items.length - directories
      if (counts.directories + counts.resources >= maxCounted) return { ...counts, complete: false }
    }
    return { ...counts, complete: true }
  } catch (error) {
    if (!isResourceError(error, 'not-found') && !isResourceError(error, 'invalid')) throw error
    return undefined
  }
}

async function readAs(view: View, uri: string): Promise<Resource | undefined> {
  try {
    const { contents } = await view.read(uri)
    for (const content of contents) if ('stream' in content) await content.stream[Symbol.asyncIterator]().return?.()
    const [content] = contents
    if (content === undefined) return undefined
    const { name, title, mimeType, version, meta } = content
    const isOne = contents.length === 1
    return {
      uri,
      name: name ?? uri,
      ...defined({ title }),
      ...(mimeType === undefined || !isOne ? {} : { mimeType }),
      ...(isOne ? { size: content.size ?? contentLength(content) } : {}),
      ...defined({ version, meta }),
    }
  } catch (error) {
    if (isResourceError(error, 'not-found')) return undefined
    // The resource exists, but is too large for one read.
    if (isResourceError(error, 'too-large')) return { uri, name: uri }
    throw error
  }
}

async function templatesFor(view: View, uri: string): Promise<StatResult['templates']> {
  const fitting: StatResult['templates'][number][] = []
  for await (const { items } of iteratePages((query) => view.templates(query)))
    for (const { uriTemplate, name } of items) {
      const values = matchOf(uriTemplate, uri)
      if (values !== undefined) fitting.push({ uriTemplate, name, values })
    }
  return fitting
}

function matchOf(uriTemplate: string, uri: string): Readonly<Record<string, string>> | undefined {
  const match = valueOr(() => compileTemplate(uriTemplate).match(uri), undefined)
  return match && Object.fromEntries([...match].map(([name, value]) => [name, formatTemplateValue(value)]))
}

function formatTemplateValue(value: unknown): string {
  return typeof value === 'string' ? value : value instanceof Map ? JSON.stringify([...value]) : JSON.stringify(value)
}

async function isWatchable(view: View, uri: string): Promise<boolean> {
  const subscription = view.subscribe?.(() => {})
  if (subscription === undefined) return false
  try {
    return (await subscription.add([uri])).length > 0
  } catch (error) {
    if (isResourceError(error)) return false
    throw error
  } finally {
    subscription.close()
  }
}

function isDirectory({ mimeType }: Resource): boolean {
  return mimeType === directoryMimeType
}

/** Whether two URIs differ at most in percent-encoding and in a slash at the end. */
function isSameUri(a: string, b: string): boolean {
  return a === b || comparableUri(a) === comparableUri(b)
}

function isAtOrBelow(uri: string, address: string): boolean {
  return (
    isSameUri(uri, address) ||
    comparableUri(uri).startsWith(`${comparableUri(address)}/`) ||
    uri.startsWith(`${address.replace(/\/$/, '')}?`)
  )
}
