import { z } from 'zod'
import { ResourceError } from '../core/errors.ts'
import type { Audience, Completion, Icon } from '../core/provider.ts'
import type { CacheHint, Resource, ResourceContent, ResourceTemplate } from '../core/view.ts'

/**
 * What servers send, as core types. It is lenient where leaving something out does no harm: a bad date, priority or icon
 * costs that field, and not the page. Without its URI, a resource is nothing, and is left out.
 */

/** Keys of hikidashi's own in `_meta`. */
const versionKey = 'dev.hikidashi/version'
const mountsKey = 'dev.hikidashi/mounts'
const unavailableKey = 'dev.hikidashi/unavailable'

/** A field that counts as absent when it is not what it should be. */
const lenient = <T extends z.ZodType>(schema: T) => schema.optional().catch(undefined)

const meta = lenient(z.record(z.string(), z.unknown()))
const icon = z.object({
  src: z.string().regex(/^(https|data):/),
  mimeType: lenient(z.string()),
  sizes: lenient(z.array(z.string())),
  theme: lenient(z.enum(['light', 'dark'])),
})
const described = {
  title: lenient(z.string().min(1)),
  description: lenient(z.string()),
  mimeType: lenient(z.string().min(1)),
  icons: lenient(z.array(z.unknown())),
  annotations: lenient(
    z.object({
      audience: lenient(z.array(z.unknown())),
      priority: lenient(z.number().min(0).max(1)),
      lastModified: lenient(z.string()),
    }),
  ),
}
const resource = z.object({
  uri: z.string().min(1),
  name: lenient(z.string().min(1)),
  size: lenient(z.int().min(0)),
  _meta: meta,
  ...described,
})
const template = z.object({ uriTemplate: z.string().min(1), name: lenient(z.string().min(1)), ...described })
const content = z.object({
  uri: lenient(z.string().min(1)),
  name: lenient(z.string().min(1)),
  title: lenient(z.string().min(1)),
  mimeType: lenient(z.string().min(1)),
  text: lenient(z.string()),
  blob: lenient(z.string()),
  _meta: meta,
})
const cached = { ttlMs: lenient(z.number().min(0)), cacheScope: lenient(z.enum(['public', 'private'])) }
/** Some servers send `null` on the last page. */
const paged = { nextCursor: z.string().nullish(), ...cached }

export const resourcePage = z.object({ resources: z.array(z.unknown()), _meta: meta, ...paged })
export const templatePage = z.object({ resourceTemplates: z.array(z.unknown()), ...paged })
export const readAnswer = z.object({ contents: z.array(z.unknown()), ...cached })
export const completionAnswer = z.object({
  completion: z.object({
    values: z.array(z.string()),
    total: lenient(z.int().min(0)),
    hasMore: lenient(z.boolean()),
  }),
})

/** What MCP allows a completion to hold. */
const maxValues = 100

export function resourcesOf(items: readonly unknown[]): readonly Resource[] {
  return items.flatMap((item) => {
    const { data } = resource.safeParse(item)
    if (data === undefined) return []
    const { uri, name, size, annotations, _meta } = data
    const version = _meta?.[versionKey]
    return [
      {
        uri,
        name: name ?? lastSegment(uri),
        ...descriptionOf(data),
        ...defined({
          size,
          modified: timeOf(annotations?.lastModified),
          version: typeof version === 'string' && version !== '' ? version : undefined,
        }),
      },
    ]
  })
}

export function templatesOf(items: readonly unknown[]): readonly ResourceTemplate[] {
  return items.flatMap((item) => {
    const { data } = template.safeParse(item)
    if (data === undefined) return []
    return [{ uriTemplate: data.uriTemplate, name: data.name ?? data.uriTemplate, ...descriptionOf(data) }]
  })
}

/** The mounts of a hikidashi server, which its first page names; `undefined` for any other server. */
export function mountsOf({ _meta }: z.infer<typeof resourcePage>): readonly Resource[] | undefined {
  const mounts = _meta?.[mountsKey]
  return Array.isArray(mounts) ? resourcesOf(mounts) : undefined
}

/** The mounts that should be on a page and did not answer, as a hikidashi server names them. */
export function unavailableOf({ _meta }: z.infer<typeof resourcePage>): { readonly unavailable?: readonly string[] } {
  const addresses = z.array(z.string()).min(1).safeParse(_meta?.[unavailableKey])
  return defined({ unavailable: addresses.data })
}

/** @throws ResourceError `internal` for a content that is neither text nor base64 (RFC 4648, section 4). */
export function contentsOf(items: readonly unknown[], asked: string): readonly ResourceContent[] {
  return items.map((item) => {
    const { data } = content.safeParse(item)
    if (data === undefined) throw malformed('a content is not an object')
    const { [versionKey]: version, ...rest } = data._meta ?? {}
    const facts = {
      uri: data.uri ?? asked,
      ...defined({
        name: data.name,
        title: data.title,
        mimeType: data.mimeType,
        version: typeof version === 'string' && version !== '' ? version : undefined,
        meta: Object.keys(rest).length > 0 ? rest : undefined,
      }),
    }
    if (data.text !== undefined) return { ...facts, text: data.text.toWellFormed() }
    if (data.blob !== undefined) return { ...facts, bytes: decodeBase64(data.blob) }
    throw malformed('a content has neither text nor blob')
  })
}

export function completionOf({ completion }: z.infer<typeof completionAnswer>): Completion {
  const { values, total, hasMore } = completion
  return { values: values.slice(0, maxValues), ...defined({ total, hasMore }) }
}

/** How long an answer may be kept. What a server does not say is: not at all. */
export function cacheOf({ ttlMs, cacheScope }: z.infer<z.ZodObject<typeof cached>>): CacheHint {
  return { ttlMs: ttlMs ?? 0, scope: cacheScope ?? 'private' }
}

function descriptionOf({ title, description, mimeType, icons, annotations }: z.infer<z.ZodObject<typeof described>>) {
  const audience = annotations?.audience?.filter((role): role is Audience => role === 'user' || role === 'assistant')
  return defined({
    title,
    description,
    mimeType,
    priority: annotations?.priority,
    audience: audience !== undefined && audience.length > 0 ? [...new Set(audience)] : undefined,
    icons: iconsOf(icons ?? []),
  })
}

function iconsOf(items: readonly unknown[]): readonly Icon[] | undefined {
  const icons = items.flatMap((item) => {
    const { data } = icon.safeParse(item)
    return data === undefined ? [] : [{ src: data.src, ...defined({ mimeType: data.mimeType, sizes: data.sizes, theme: data.theme }) }]
  })
  return icons.length > 0 ? icons : undefined
}

/** ISO 8601 in milliseconds since 1970. A time without a zone is taken for UTC, and not for that of this machine. */
function timeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const time = Date.parse(/^\d{4}-\d\d-\d\dT[\d:.]+$/.test(text) ? `${text}Z` : text)
  return Number.isFinite(time) ? time : undefined
}

/** Node's own decoder passes over what is not base64; here it is an error. */
function decodeBase64(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64')
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  if (text.length % 4 !== 0 || bytes.length !== (text.length / 4) * 3 - padding || !/^[A-Za-z0-9+/]*={0,2}$/.test(text))
    throw malformed('a blob is not base64')
  return bytes
}

function malformed(what: string): ResourceError {
  return new ResourceError('internal', `The server's answer to resources/read is malformed: ${what}.`)
}

/** A name for what has none: the last segment of its URI, decoded where that is possible. */
export function lastSegment(uri: string): string {
  const path = uri.replace(/[?#].*$/s, '').replace(/\/+$/, '')
  const segment = path.slice(Math.max(path.lastIndexOf('/'), path.indexOf(':')) + 1)
  try {
    return decodeURIComponent(segment) || uri
  } catch {
    return segment || uri
  }
}

type Defined<T> = { readonly [K in keyof T]?: Exclude<T[K], undefined> }

/** An object without its undefined members. */
function defined<T extends object>(members: T): Defined<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<T>
}
