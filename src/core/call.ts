/** The caller of an operation. */
export interface Principal {
  /** Unique per caller. */
  readonly id: string
  /** The name that a person gave the credentials of the caller, for logs. */
  readonly label?: string
  /** Roles, as access rules name them. */
  readonly roles: readonly string[]
  /**
   * The OAuth scopes that the token of the caller grants, including those that a broader one implies. Undefined when
   * the caller has no such token.
   */
  readonly scopes?: readonly string[] | undefined
}

/** Context of a call to a provider. */
export interface Context {
  readonly principal: Principal
  readonly signal: AbortSignal
  /**
   * Maximum size of the content at the moment, in bytes. For a larger content, a provider that knows the size before it
   * fetches the content throws {@link overReadLimitError}; the catalog then tries again when there is room. Other
   * providers may ignore it.
   */
  readonly most?: number | undefined
  /**
   * Deadline for the first answer of a source, in the milliseconds of `performance.now()`. A source that has not
   * answered any request by then throws `unavailable` with `retryAfter`, and reports a change once it has answered.
   * Other sources may ignore it.
   */
  readonly answerBy?: number | undefined
  /**
   * Whether the caller may see another path of the same source, by the access rules. A source that serves one entry
   * under several paths (by a symbolic link) checks its other paths; if the caller may not see one of them, the entry
   * must look missing. Undefined: every path may be seen.
   */
  readonly allows?: ((path: string) => boolean) | undefined
}
