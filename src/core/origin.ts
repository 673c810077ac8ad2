import { formatHttpUrl, parseHttpUrl } from './http-url.ts'
import { metaKeys } from './meta.ts'
import { redactedMark } from './scrub.ts'

/** The page of a document at its source, for people, and its revision. */
export interface Origin {
  /** An http or https URL. */
  readonly link?: string
  /** Name of the revision in the source; opaque. */
  readonly revision?: string
}

/** Maximum length of a revision, in characters. A longer text is not taken for one. */
const maxRevision = 200

/** Returns the origin in the metadata of a document. A link that is not an http or https URL is left out: people may click on it. */
export function originIn(meta: Readonly<Record<string, unknown>> | undefined): Origin {
  // A link of the operator's configuration takes precedence over one of the source.
  return { ...told(meta?.[metaKeys.drive]), ...told(meta?.[metaKeys.source]) }
}

function told(value: unknown): Origin {
  return typeof value === 'object' && value !== null ? originOf(value as Readonly<Record<string, unknown>>) : {}
}

/** Returns the origin in an object with the members `link` and `revision`. */
export function originOf({ link, revision }: Readonly<Record<string, unknown>>): Origin {
  const url = webLink(link)
  const isRevision = typeof revision === 'string' && revision.length <= maxRevision && /^[^\p{Cc}]+$/u.test(revision)
  return { ...(url === undefined ? {} : { link: url }), ...(isRevision ? { revision } : {}) }
}

/**
 * Returns an http or https URL in its strict spelling, which is safe to embed in other text. Undefined for other text, and for a
 * redacted URL, which leads nowhere.
 */
export function webLink(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.includes(redactedMark)) return undefined
  try {
    return formatHttpUrl(parseHttpUrl(value))
  } catch {
    return undefined
  }
}
