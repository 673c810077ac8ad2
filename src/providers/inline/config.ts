import { isDataUri } from '../../core/data-uri.ts'
import { isResourceError } from '../../core/errors.ts'
import * as z from '../../schema/builder.ts'
import { type Finding, refusal } from '../../schema/refusals.ts'
import { withoutEffects } from '../../schema/shapes.ts'
import { sliced } from '../../wrap/sliced.ts'
import { defineSourceSchema, type OpenSource, type OptionsOf } from '../source.ts'
import { descriptionShape } from '../web/config.ts'
import { type InlineResource, inline } from './index.ts'

const base64 = z.string().regex(/^[A-Za-z0-9+/\s]*={0,2}\s*$/, {
  error: refusal('This is not base64.', 'Write the bytes in base64 (RFC 4648), with "+" and "/".'),
})

const body = {
  text: z.string().optionalKey('The content, as text.'),
  base64: base64.optionalKey('The content, as bytes in base64.'),
}

const { mimeType, priority, audience, ...names } = descriptionShape

const inlineShape = {
  ...body,
  mimeType,
  priority,
  audience,
  resources: z
    .record(z.string(), z.strictObject({ ...body, ...names, mimeType, priority, audience }))
    .optionalKey('Several resources, by their paths below the address, instead of a single resource at the address.'),
}

export const source = defineSourceSchema({
  about: 'Small resources that the configuration holds itself.',
  shape: inlineShape,
  findings: (_, { address }, options) => (options === undefined ? [] : inlineFindings(address, options)),
  effects: {
    options: {
      ...withoutEffects('text base64 mimeType priority audience resources'),
    },
  },
})

type InlineOptions = OptionsOf<typeof inlineShape>

export const open: OpenSource<typeof source> = async (options, { address }) => {
  const provider = inline({ resources: resourcesIn(address, options) })
  // A single resource is at the address of the mount: it has no path, so no template can ask for a part of it.
  return options.resources === undefined ? provider : sliced(provider)
}

type Resources = Readonly<Record<string, InlineResource>>

function resourcesIn(address: string, options: InlineOptions): Resources {
  const { title, description, text, base64, mimeType, priority, audience, resources } = options
  if (resources !== undefined)
    return Object.fromEntries(Object.entries(resources).map(([path, resource]) => [path, toInlineResource(resource)]))
  const single = { title, description, text, base64, mimeType, priority, audience }
  const own = isDataUri(address) ? { data: address } : {}
  return { '': { ...toInlineResource(single), ...own } }
}

type Optional<T> = { readonly [K in keyof T]?: T[K] | undefined }

function toInlineResource({
  base64,
  ...resource
}: Optional<Omit<InlineResource, 'bytes' | 'data'>> & { readonly base64?: string | undefined }): InlineResource {
  const facts = Object.fromEntries(Object.entries(resource).filter(([, value]) => value !== undefined))
  return { ...facts, ...(base64 === undefined ? {} : { bytes: Buffer.from(base64, 'base64') }) }
}

function inlineFindings(address: string, options: InlineOptions): readonly Finding[] {
  const path = ['mounts', address]
  const bodies = (['text', 'base64', 'resources'] as const).filter((key) => options[key] !== undefined)
  if (isDataUri(address)) {
    const surplus = (['text', 'base64', 'resources', 'mimeType'] as const).filter((key) => options[key] !== undefined)
    if (surplus.length > 0)
      return surplus.map((key) => ({
        path: [...path, key],
        message: 'The address is a data: URI, which already holds the content.',
        fix: 'Remove this key, or give the mount an address with another scheme.',
      }))
  } else if (bodies.length !== 1) {
    const message =
      bodies.length === 0
        ? 'The mount has none of "text", "base64" and "resources".'
        : 'The mount has more than one of "text", "base64" and "resources".'
    return [{ path, message, fix: 'Write exactly one of them.' }]
  }
  return faultsIn(resourcesIn(address, options), path, options.resources !== undefined)
}

/** Returns the faults of the single resources or, if there are none, those of all resources together. */
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
