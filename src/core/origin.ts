import { formatHttpUrl, parseHttpUrl } from './http-url.ts'
import { metaKeys } from './meta.ts'
import { redactedMark } from './scrub.ts'

/** Where people open a document at its source, and in which revision it is. */
export interface Origin {
  /** A URL of the web. */
  readonly link?: string
  /** As the source names it; opaque. */
  readonly revision?: string
}

/** The longest revision that is believed to be one, in characters. */
const maxRevision = 200

/** What the metadata of a document says of its origin. Whatever is no URL of the web is left out: somebody may click on it. */
export function originIn(meta: Readonly<Record<string, unknown>> | undefined): Origin {
  // What the operator says of the mount counts before what the source says.
  return { ...told(meta?.[metaKeys.drive]), ...told(meta?.[metaKeys.source]) }
}

function told(value: unknown): Origin {
  return typeof value === 'object' && value !== null ? originOf(value as Readonly<Record<string, unknown>>) : {}
}

/** The same of an object that has `link` and `revision` itself. */
export function originOf({ link, revision }: Readonly<Record<string, unknown>>): Origin {
  const url = webLink(link)
  const isRevision = typeof revision === 'string' && revision.length <= maxRevision && /^[^\p{Cc}]+$/u.test(revision)
  return { ...(url === undefined ? {} : { link: url }), ...(isRevision ? { revision } : {}) }
}

/** A URL of the web in its proper spelling, in which nothing can end what it stands in. Without a part of it, it leads nowhere. */
export function webLink(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.includes(redactedMark)) return undefined
  try {
    return formatHttpUrl(parseHttpUrl(value))
  } catch {
    return undefined
  }
}
