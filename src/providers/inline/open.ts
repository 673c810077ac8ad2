import { isDataUri } from '../../core/data-uri.ts'
import { isResourceError } from '../../core/errors.ts'
import type { Finding } from '../../schema/refusals.ts'
import { sliced } from '../../wrap/sliced.ts'
import type { OpenSource, OptionsOf } from '../source.ts'
import type { inlineShape, source } from './config.ts'
import { type InlineResource, inline } from './index.ts'

type InlineOptions = OptionsOf<typeof inlineShape>

/** Opens the resources that a mount holds itself. */
export const open: OpenSource<typeof source> = async (options, { address }) => {
  const provider = inline({ resources: resourcesIn(address, options) })
  // A single resource is at the address of the mount: it has no path, so no template can ask for a part of it.
  return options.resources === undefined ? provider : sliced(provider)
}

type Resources = Readonly<Record<string, InlineResource>>

function resourcesIn(address: string, options: InlineOptions): Resources {
  const { title, description, text, base64, mimeType, priority, audience, resources } = options
  if (resources !== undefined)
    return Object.fromEntries(Object.entries(resources).map(([path, resource]) => [path, resourceOf(resource)]))
  const single = { title, description, text, base64, mimeType, priority, audience }
  const own = isDataUri(address) ? { data: address } : {}
  return { '': { ...resourceOf(single), ...own } }
}

type Optional<T> = { readonly [K in keyof T]?: T[K] | undefined }

function resourceOf({
  base64,
  ...resource
}: Optional<Omit<InlineResource, 'bytes' | 'data'>> & { readonly base64?: string | undefined }): InlineResource {
  const given = Object.fromEntries(Object.entries(resource).filter(([, value]) => value !== undefined))
  return { ...given, ...(base64 === undefined ? {} : { bytes: Buffer.from(base64, 'base64') }) }
}

/** Finds resources whose content is invalid, or whose paths conflict. */
export function inlineFindings(address: string, options: InlineOptions): readonly Finding[] {
  const path = ['mounts', address]
  const bodies = (['text', 'base64', 'resources'] as const).filter((key) => options[key] !== undefined)
  if (isDataUri(address)) {
    const surplus = (['text', 'base64', 'resources', 'mimeType'] as const).filter((key) => options[key] !== undefined)
    if (surplus.length > 0)
      return surplus.map((key) => ({
        path: [...path, key],
        message: 'A data: URI is its content itself.',
        fix: 'Remove the key, or give the mount an address of another kind.',
      }))
  } else if (bodies.length !== 1) {
    const message = bodies.length === 0 ? 'The mount has no content.' : 'The mount has several contents.'
    return [{ path, message, fix: 'Write one of "text", "base64" and "resources".' }]
  }
  return faultsIn(resourcesIn(address, options), path, options.resources !== undefined)
}

/** Returns the faults of resources: of each one, or if there are none, of all together. */
function faultsIn(resources: Resources, path: readonly string[], several: boolean): readonly Finding[] {
  const faultOf = (some: Resources, at: readonly string[]): readonly Finding[] => {
    try {
      inline({ resources: some })
      return []
    } catch (error) {
      if (!isResourceError(error)) throw error
      return [{ path: at, message: error.message, fix: 'Correct it, or remove it.' }]
    }
  }
  const each = Object.entries(resources).flatMap(([name, resource]) =>
    faultOf({ [name]: resource }, several ? [...path, 'resources', name] : path),
  )
  return each.length > 0 ? each : faultOf(resources, several ? [...path, 'resources'] : path)
}
