/**
 * What stands in `_meta` beside the protocol's own keys. Every key of ours is one of these, under a name that is ours
 * (MCP specification, basic: `_meta`).
 */
export const metaKeys = {
  /** The version of a resource or content: opaque, another one when the content is. */
  version: 'dev.hikidashi/version',
  /** On the first page of a list: the mounts, as resources. */
  mounts: 'dev.hikidashi/mounts',
  /** On a page: the addresses of mounts that should be on it and did not answer. */
  unavailable: 'dev.hikidashi/unavailable',
  /** Which part of a resource a content is, and how to ask for the next. */
  part: 'dev.hikidashi/part',
  /** `true`: there is more than this. */
  truncated: 'dev.hikidashi/truncated',
  /** The encoding that a text is stored in, where it is not plain UTF-8: the size that is listed is that of what is stored. */
  encoding: 'dev.hikidashi/encoding',
  /** What a document can be read as beside what it is (`forms`); of such a reading, the type of the document that it is of (`of`). */
  reading: 'dev.hikidashi/reading',
  /** The size of the whole in bytes, where the content is only its beginning. */
  size: 'dev.hikidashi/size',
  /** What a store of objects says of one, beside size, time and version: stored type, storage class, its metadata. */
  object: 'dev.hikidashi/object',
  /** What Drive says of a file, beside size, time and version: link and revision; where it is read, owners and who changed it last too. */
  drive: 'dev.hikidashi/drive',
  /** Where a person opens the resource: `link`, a URL of the web, as the operator has said it for the mount. */
  source: 'dev.hikidashi/source',
  /** Where the whole of what is too large to be answered can be fetched, and until when. It is a secret while it holds. */
  link: 'dev.hikidashi/link',
  /**
   * Which of the texts beside it come from the source, and not from the operator: `title`, `description`. Whoever wrote a document, a table
   * or a commit, or runs another server, chose the words.
   */
  untrusted: 'dev.hikidashi/untrusted',
  /** Through which processes something was relayed, by marks that they chose: what comes back to one is not listed again. */
  via: 'dev.hikidashi/via',
} as const
