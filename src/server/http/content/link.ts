/** A URL for the bytes of one resource. It is a secret: everyone who has it can read the resource until it expires. */
export interface ContentLink {
  readonly href: string
  /** Time at which it expires (ISO 8601). */
  readonly expires: string
}

/** Creates the link to a resource for the caller of one request. Undefined when it would be too long. */
export type LinkFor = (uri: string) => ContentLink | undefined
