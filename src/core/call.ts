/** The caller of an operation. `id` is unique per caller; access rules name `roles`. */
export interface Principal {
  readonly id: string
  /** The name that a person gave the credentials of the caller, for logs. */
  readonly label?: string
  readonly roles: readonly string[]
  /** The OAuth scopes that the token of the caller grants, including those that a broader one implies. Undefined when no token limits the caller. */
  readonly scopes?: readonly string[] | undefined
}

/** Context of every call: the caller, and the signal that aborts the call. A provider stops its work soon after the abort. */
export interface Context {
  readonly principal: Principal
  readonly signal: AbortSignal
  /**
   * Maximum size of the content at the moment, in bytes. For a larger content, a provider that knows the size before it fetches the
   * content throws {@link overReadLimitError}; the catalog then retries when there is room. Other providers may ignore it.
   */
  readonly most?: number | undefined
  /**
   * Deadline for the first answer of a source, in the milliseconds of `performance.now()`. It is set when the caller combines the answers
   * of several sources. A source that has not answered any request by then throws `unavailable` with `retryAfter`, and reports a change
   * once it has answered. Other sources may ignore it.
   */
  readonly answerBy?: number | undefined
  /**
   * Whether the caller may see another path of the same source, by the access rules. A source that serves one entry under several
   * paths (by a symbolic link) checks each path except the requested one; if the caller may not see one of them, the entry must
   * look missing. Undefined: every path may be seen.
   */
  readonly allows?: ((path: string) => boolean) | undefined
}
