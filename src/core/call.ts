/** The caller of an operation. `id` is unique per caller; access rules name `roles`. */
export interface Principal {
  readonly id: string
  readonly roles: readonly string[]
  /** The OAuth scopes that its token grants, including those that a broader one implies. Undefined when no token limits it. */
  readonly scopes?: readonly string[] | undefined
}

/**
 * Requests with the same arrival had all arrived before the first of them was handled. So a source that looks whether something has changed while
 * it answers one of them need not look again for the others. Compared by identity.
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
  /** Whether only the content is needed: facts that need a look-up of their own may be left out. */
  readonly bare?: boolean | undefined
  /** The arrival of the request, when it is the first thing that its client has asked for. See {@link Arrival}. */
  readonly arrival?: Arrival | undefined
  /**
   * Returns memory for the bytes of a part of a content: a source may read into it, in place of memory of its own. The caller uses the memory again for the next
   * part, when it has sent this one.
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
 * An abort whose `AbortSignal` is made when somebody asks for it. A signal takes 4 µs to make, and a small read that is answered from memory takes
 * 100 and asks for none.
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

  /** Calls the listener with the reason when it aborts: at once if it has. */
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

  /** Aborts, once. Default of the reason: an `AbortError`, as `AbortController.abort` has it. */
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
 * Lets a request be cancelled, also before its channel gets it. Cheaper than an `AbortSignal` with its listeners, which every
 * request would need.
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

/** An object with the signal of a {@link LateAbort}. */
export class WithLateSignal {
  declare readonly signal: AbortSignal
  readonly #abort: LateAbort

  /** A property of each object, so that a spread copies it; and one function for all, so that V8 gives all objects the same shape. */
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

  /** Returns the abort of an object whose signal is made late; undefined for any other. */
  static abortOf(object: object): LateAbort | undefined {
    return #abort in object ? object.#abort : undefined
  }
}

/** Returns the members with the signal of an object, which is made as late as it can be. */
export function withSignalOf<T extends object>(object: { readonly signal: AbortSignal }, members: T) {
  const abort = WithLateSignal.abortOf(object)
  return abort === undefined ? { signal: object.signal, ...members } : Object.assign(new WithLateSignal(abort), members)
}

/** A request with a time-out. */
export interface Timed {
  readonly onOver: () => void
  /**
   * Set when it begins: `process.uptime()`, a clock that is never set back. Node loads `performance` when it is first used, which a start
   * would wait for.
   */
  begunSeconds?: number
  /** Index among the requests in flight. */
  index?: number | undefined
}

/** The requests in flight. Ends those that take longer than a time-out, with one timer for all of them. */
export function createOverdue<T extends Timed>(timeoutMs: number) {
  /**
   * In no order. A `Set` makes a new table after some additions and removals, and each old one still points to its members and to the next
   * table. Once one of them is in the old generation of the heap, everything that was in any of them stays there until the next full garbage
   * collection: a quarter of what small reads left there. An array leaves nothing behind.
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
    // The timer goes on for the next request, but does not keep the process alive.
    if (running.length === 0) timer?.unref()
  }

  const look = () => {
    const now = process.uptime()
    // A copy, because requests end meanwhile.
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
    /** Calls `onOver` of the request when the time is over, at most an eighth of it late, unless the request ends before. */
    begin: (request: T): void => {
      request.begunSeconds = process.uptime()
      request.index = running.length
      running.push(request)
      if (timer === undefined) timer = setInterval(look, Math.max(1, Math.ceil(timeoutMs / 8)))
      else if (running.length === 1) timer.ref()
    },
    /** Does nothing for a request that has not begun, or has ended. */
    end,
    [Symbol.iterator]: () => [...running].values(),
  }
}
