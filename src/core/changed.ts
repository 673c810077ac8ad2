import { createHash, randomBytes } from 'node:crypto'
import type { Principal } from './call.ts'
import type { EarlierTexts } from './earlier.ts'
import { tooLarge } from './errors.ts'
import { defined, isObject, jsonIn } from './kit/object.ts'
import { steadyVersion } from './stat.ts'
import type { ChangedQuery, ChangedResource, ChangedResources, Page, Resource } from './view.ts'

interface ChangedOptions {
  readonly texts: EarlierTexts
  readonly principal: Principal
  readonly list: (cursor: string | undefined) => Promise<Page<Resource>>
  readonly allows: (uri: string) => boolean
}

const maxListed = 100_000

/**
 * Suffix of a version that a later state may have too, because the resource was modified just before. The resource
 * counts as changed once its version is certain.
 */
const unsteady = '~'
const stripUnsteadySuffix = (version: string) =>
  version.endsWith(unsteady) ? version.slice(0, -unsteady.length) : version

/** The version of each listed resource by its URI; empty if it has none. */
type Versions = ReadonlyMap<string, string>

/**
 * Compares the current listing with an earlier one of the same principal, and keeps the current one. A resource with
 * neither a version nor a time has nothing to compare.
 * @throws ResourceError `too-large` for more than 100,000 resources.
 */
export async function changedResources(
  { since, uri, limit }: ChangedQuery,
  options: ChangedOptions,
): Promise<ChangedResources> {
  const { texts, principal } = options
  const keyOf = (token: string) => `listing/${ownerOf(principal)}/${token}`
  const { versions, unavailable } = await versionsOf(options.list)
  const sinceVersion = since === undefined || !/^[\w-]{22}$/.test(since) ? undefined : await texts.get(keyOf(since))
  const before = sinceVersion === undefined ? undefined : parseVersions(sinceVersion)
  const now = new Map(versions)
  // A mount that does not answer counts as unchanged.
  for (const [at, version] of before ?? []) if (isBelowAny(at, unavailable) && !now.has(at)) now.set(at, version)
  const isSame = before !== undefined && hasSame(before, now)
  const token = isSame && since !== undefined ? since : randomBytes(16).toString('base64url')
  if (!isSame) await texts.put(keyOf(token), JSON.stringify([...now]))
  const changes = before === undefined ? [] : [...diffVersions(before, now)].filter(isWanted(uri, options.allows))
  const firstChanges = changes.slice(0, limit)
  const of = (kind: Found['kind']) => firstChanges.flatMap((one) => (one.kind === kind ? [one.resource] : []))
  return {
    since: token,
    unknown: since !== undefined && before === undefined,
    created: of('created'),
    updated: of('updated'),
    deleted: of('deleted'),
    more: changes.length - firstChanges.length,
    unversioned: [...now.values()].filter((version) => version === '').length,
    unavailable,
  }
}

interface Found {
  readonly kind: 'created' | 'updated' | 'deleted'
  readonly resource: ChangedResource
}

/** Returns a test for changes at or below a URI, of resources that the principal may see now. */
function isWanted(uri: string | undefined, allows: (uri: string) => boolean) {
  return ({ resource }: Found): boolean =>
    (uri === undefined || isBelowAny(resource.uri, [uri.replace(/\/$/, '')])) && allows(resource.uri)
}

function isBelowAny(uri: string, addresses: readonly string[]): boolean {
  return addresses.some((address) => uri === address || uri.startsWith(`${address}/`))
}

function ownerOf({ id, roles, scopes }: Principal): string {
  return createHash('sha256')
    .update(JSON.stringify([id, roles, scopes ?? null]))
    .digest('base64url')
}

async function versionsOf(list: ChangedOptions['list']) {
  const versions = new Map<string, string>()
  const unavailable = new Set<string>()
  let cursor: string | undefined
  do {
    const page = await list(cursor)
    for (const { uri, version, size, modified } of page.items) {
      const own = version ?? (modified === undefined ? '' : `${modified}.${size ?? ''}`)
      const isSteady = own === '' || steadyVersion({ version: own, ...defined({ modified }) }) !== undefined
      versions.set(uri, isSteady ? own : own + unsteady)
    }
    for (const address of page.unavailable ?? []) unavailable.add(address.replace(/\/$/, ''))
    if (versions.size > maxListed)
      throw tooLarge(`There are more than ${maxListed} resources, too many to compare. Read or search them instead.`, {
        limit: maxListed,
      })
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return { versions, unavailable: [...unavailable] }
}

function parseVersions(text: string): Versions | undefined {
  const value = jsonIn(text)
  if (!Array.isArray(value) || isObject(value)) return undefined
  return new Map(value.map(([uri, version]: readonly unknown[]) => [String(uri), String(version)]))
}

function hasSame(before: Versions, now: Versions): boolean {
  return before.size === now.size && [...now].every(([uri, version]) => before.get(uri) === version)
}

function* diffVersions(before: Versions, now: Versions): Generator<Found> {
  const of = (version: string) => (version === '' ? {} : { version: stripUnsteadySuffix(version) })
  for (const [uri, version] of now) {
    const earlier = before.get(uri)
    if (earlier === undefined) yield { kind: 'created', resource: { uri, ...of(version) } }
    else if (earlier !== version)
      yield { kind: 'updated', resource: { uri, ...of(version), before: stripUnsteadySuffix(earlier) } }
  }
  for (const [uri, version] of before) if (!now.has(uri)) yield { kind: 'deleted', resource: { uri, ...of(version) } }
}
