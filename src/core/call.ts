/** The caller of an operation. `id` is unique per caller; access rules name `roles`. */
export interface Principal {
  readonly id: string
  readonly roles: readonly string[]
  /** The OAuth scopes that the token of the caller grants, including those that a broader one implies. Undefined when no token limits the caller. */
  readonly scopes?: readonly string[] | undefined
}

/**
 * Identifies requests that had all arrived before the first of them was handled. A source that checks for changes while it answers
 * one of them need not check again for the others. Compared by identity.
 */
export type Arrival = object

/** Context of every call: the caller, and the signal that aborts it. A provider stops its work soon after the abort. */
export interface Context {
  readonly principal: Principal
  readonly signal: AbortSignal
  /**
   * Maximum size of the content at the moment, in bytes. For a larger one, a provider that knows the size before it fetches the
   * content throws {@link later}; the catalog then retries when there is room. Other providers may ignore it.
   */
  readonly most?: number | undefined
  /** Whether only the content is needed. The provider may leave out metadata that it would have to look up separately. */
  readonly bare?: boolean | undefined
  /** Identifies the requests that arrived together with this one. Undefined when an earlier request of the same client is answered first. */
  readonly arrival?: Arrival | undefined
  /**
   * Returns memory into which a source may read the bytes of a part of a content, instead of allocating its own. The caller reuses
   * the memory for the next part when it has sent this one.
   */
  readonly into?: ((bytes: number) => Buffer) | undefined
  /**
   * Whether the caller may see another path of the same source, by the access rules. A source that serves one entry under several
   * paths (by a symbolic link) checks each path except the requested one; if the caller may not see one of them, the entry must
   * look missing. Undefined: every path may be seen.
   */
  readonly allows?: ((path: string) => boolean) | undefined
}

/**
 * An abort that creates its `AbortSignal` only when the signal is used. Creating one takes 4 µs, while a small read that is
 * answered from memory takes 100 µs and uses none.
 */
export class LateAbort {
  #controller: AbortController | undefined
  aborted = false
  reason: unknown
  #listeners: Set<(reason: unknown) => void> | undefined

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.aborted) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  /** Calls the listener with the reason of the abort; at once if it has aborted already. */
  listen(listener: (reason: unknown) => void): void {
    if (this.aborted) listener(this.reason)
    else {
      this.#listeners ??= new Set()
      this.#listeners.add(listener)
    }
  }

  unlisten(listener: (reason: unknown) => void): void {
    this.#listeners?.delete(listener)
  }

  /** Aborts. Further calls have no effect. The default reason is an `AbortError`, as for `AbortController.abort`. */
  abort(reason: unknown = new DOMException('This operation was aborted', 'AbortError')): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    for (const listener of this.#listeners ?? []) listener(reason)
    this.#listeners = undefined
    this.#controller?.abort(reason)
  }
}

/**
 * A handle to cancel a request, even before its channel has received it. It is cheaper than an `AbortSignal` with listeners for
 * each request.
 */
export interface Cancellation {
  isCancelled: boolean
  /** Set by the channel while the request runs. */
  onCancel: (() => void) | undefined
}

/** Cancels a request, unless it has ended. */
export function cancelRequest(cancellation: Cancellation): void {
  cancellation.isCancelled = true
  cancellation.onCancel?.()
}

/** An object whose `signal` is that of a {@link LateAbort}, created when it is first used. */
export class WithLateSignal {
  declare readonly signal: AbortSignal
  readonly #abort: LateAbort

  /** Descriptor of `signal`: an own property, so that a spread copies it, with one getter for all objects, so that V8 gives them the same shape. */
  static readonly #signal: PropertyDescriptor & ThisType<WithLateSignal> = {
    enumerable: true,
    get() {
      return this.#abort.signal
    },
  }

  constructor(abort: LateAbort) {
    this.#abort = abort
    Object.defineProperty(this, 'signal', WithLateSignal.#signal)
  }

  /** Returns the {@link LateAbort} of an object; undefined for an object with an ordinary signal. */
  static abortOf(object: object): LateAbort | undefined {
    return #abort in object ? object.#abort : undefined
  }
}

/** Returns the given members together with the signal of an object. A signal that does not exist yet is still created only when it is used. */
export function withSignalOf<T extends object>(object: { readonly signal: AbortSignal }, members: T) {
  const abort = WithLateSignal.abortOf(object)
  return abort === undefined ? { signal: object.signal, ...members } : Object.assign(new WithLateSignal(abort), members)
}

/** A request with a time-out. */
export interface Timed {
  readonly onOver: () => void
  /**
   * Time at which the request began, in seconds of `process.uptime()`, a clock that is never set back. `performance` would delay
   * the start: Node loads it when it is first used.
   */
  begunSeconds?: number
  /** Index among the requests in flight. */
  index?: number | undefined
}

/** Creates the set of the requests in flight, which ends those that exceed a time-out, with one timer for all of them. */
export function createOverdue<T extends Timed>(timeoutMs: number) {
  /**
   * The requests in flight, in no order. A `Set` would make a new table after some changes, and each old table still refers to its
   * members and to the next table. Once a table is in the old generation of the heap, the members of all later ones stay there
   * until the next full garbage collection: a quarter of the garbage that small reads left there.
   */
  const running: T[] = []
  let timer: NodeJS.Timeout | undefined

  const end = (request: T): void => {
    const { index } = request
    if (index === undefined || running[index] !== request) return
    request.index = undefined
    const last = running.pop()
    if (last !== undefined && last !== request) {
      running[index] = last
      last.index = index
    }
    // The timer continues for the next request, but does not keep the process alive.
    if (running.length === 0) timer?.unref()
  }

  const look = () => {
    const now = process.uptime()
    // Iterate a copy, because requests end meanwhile.
    for (const request of [...running]) {
      if ((now - (request.begunSeconds ?? now)) * 1000 < timeoutMs) continue
      end(request)
      request.onOver()
    }
    if (running.length > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    timeoutMs,
    /** Adds a request. Calls its `onOver` when its time-out is exceeded, at most an eighth of the time-out late, unless the request ends before. */
    begin: (request: T): void => {
      request.begunSeconds = process.uptime()
      request.index = running.length
      running.push(request)
      if (timer === undefined) timer = setInterval(look, Math.max(1, Math.ceil(timeoutMs / 8)))
      else if (running.length === 1) timer.ref()
    },
    /** Removes a request. It has no effect for a request that has not begun, or has ended. */
    end,
    [Symbol.iterator]: () => [...running].values(),
  }
}
