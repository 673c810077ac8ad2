import { formatHttpUrl, parseHttpUrl } from './http-url.ts'
import { redactedMark } from './scrub.ts'

/** Keys of this project in `_meta`, under a prefix of its own (MCP specification, basic: `_meta`). */
export const metaKeys = {
  /** Version of a resource or content: opaque, and different when the content differs. */
  version: 'dev.hikidashi/version',
  /** Full id of the commit from which a content was read. */
  commit: 'dev.hikidashi/commit',
  /** On the first page of a list: the mounts, as resources. */
  mounts: 'dev.hikidashi/mounts',
  /** Of a mount: the kind of its data, for people (`MountKind`). */
  kind: 'dev.hikidashi/kind',
  /** On a page: the addresses of the mounts that are missing because they did not answer. */
  unavailable: 'dev.hikidashi/unavailable',
  /** Of a read since a version: the form of the answer (`DeltaMetadata`). */
  delta: 'dev.hikidashi/delta',
  /** The part of a resource that a content holds, and how to request the next one. */
  part: 'dev.hikidashi/part',
  /** `true`: the content is incomplete. */
  truncated: 'dev.hikidashi/truncated',
  /** The encoding of a stored text other than plain UTF-8. The listed size is that of the stored text. */
  encoding: 'dev.hikidashi/encoding',
  /** Of a document: the other forms in which it can be read (`forms`). Of such a form: the type of the document (`of`). */
  reading: 'dev.hikidashi/reading',
  /** The size of the whole resource in bytes, when the content is only its beginning. */
  size: 'dev.hikidashi/size',
  /** Facts of an object store about an object, besides size, time and version: stored type, storage class, its metadata. */
  object: 'dev.hikidashi/object',
  /** Facts of Drive about a file, besides size, time and version: link and revision; in a read also its owners and the author of the last change. */
  drive: 'dev.hikidashi/drive',
  /** Page of the resource for people: `link`, an http or https URL that the operator configures for the mount. */
  source: 'dev.hikidashi/source',
  /** URL from which content that is too large for an answer can be fetched, and its expiry. The URL is a secret until then. */
  link: 'dev.hikidashi/link',
  /**
   * Names the members (`title`, `description`) whose text comes from the source, and not from the operator: the author of a
   * document, a table or a commit, or another server, chose the words.
   */
  untrusted: 'dev.hikidashi/untrusted',
  /** Identifiers of the processes that relayed a resource. */
  via: 'dev.hikidashi/via',
} as const

/** URI of the overview that a hikidashi server lists first. */
export const overviewUri = 'hikidashi://overview'

/** The page of a document at its source, for people, and its revision. */
export interface DocumentOrigin {
  /** An http or https URL. */
  readonly link?: string
  /** Name of the revision in the source; opaque. */
  readonly revision?: string
}

const maxRevision = 200

/**
 * Returns the origin in the metadata of a document. A link that is not an http or https URL is left out: people may
 * click on it.
 */
export function documentOriginIn(meta: Readonly<Record<string, unknown>> | undefined): DocumentOrigin {
  // A link of the operator's configuration takes precedence over one of the source.
  return { ...told(meta?.[metaKeys.drive]), ...told(meta?.[metaKeys.source]) }
}

function told(value: unknown): DocumentOrigin {
  return typeof value === 'object' && value !== null
    ? parseDocumentOrigin(value as Readonly<Record<string, unknown>>)
    : {}
}

export function parseDocumentOrigin({ link, revision }: Readonly<Record<string, unknown>>): DocumentOrigin {
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
