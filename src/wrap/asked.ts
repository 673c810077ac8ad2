import { ResourceError } from '../core/errors.ts'
import type { Overdue } from '../core/kit/overdue.ts'
import type { Context } from '../core/provider.ts'

/** A request to the source, and its signal, which aborts with that of the caller and on time-out. */
export interface Asked {
  /** Rejects on time-out, and when the caller aborts, whatever the work does. */
  run<T>(work: (context: Context) => Promise<T>): Promise<T>
  /** Ends the time-out, and stops following the signal of the caller. */
  release(): void
}

/**
 * The context of a caller with a signal of its own. Few sources look at the signal before they answer from memory, so it is made when it is
 * asked for.
 */
class AskedContext implements Context {
  readonly principal: Context['principal']
  declare readonly signal: AbortSignal
  declare readonly most?: number
  declare readonly bare?: boolean
  declare readonly allows?: (path: string) => boolean
  #controller: AbortController | undefined
  #ended: { readonly reason: unknown } | undefined

  /** A property of each object, so that a spread copies it; and one function for all, so that V8 gives all objects the same shape. */
  static readonly #signal: PropertyDescriptor & ThisType<AskedContext> = {
    enumerable: true,
    get() {
      if (this.#controller === undefined) {
        this.#controller = new AbortController()
        if (this.#ended !== undefined) this.#controller.abort(this.#ended.reason)
      }
      return this.#controller.signal
    },
  }

  constructor({ signal: _, principal, ...facts }: Context) {
    this.principal = principal
    Object.defineProperty(this, 'signal', AskedContext.#signal)
    Object.assign(this, facts)
  }

  abort(reason: unknown): void {
    this.#ended ??= { reason }
    this.#controller?.abort(reason)
  }
}

export function createAsked(context: Context, overdue: Overdue): Asked {
  const { signal } = context
  let ended: { readonly reason: unknown } | undefined
  const inner = new AskedContext(context)
  let reject: (reason: unknown) => void = () => {}
  let stop = () => {}
  const end = (reason: unknown) => {
    ended ??= { reason }
    inner.abort(reason)
    reject(reason)
  }
  const onAbort = () => end(signal.reason)
  // The signal may have aborted just as a slot became free.
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort)
  return {
    run: (work) =>
      new Promise((resolve, rejectRun) => {
        if (ended !== undefined) return rejectRun(ended.reason)
        reject = rejectRun
        stop = overdue.begin(() =>
          end(new ResourceError('unavailable', `The source took longer than ${overdue.timeoutMs} ms.`)),
        )
        work(inner).then((answer) => {
          // A stream may last as long as its chunks arrive in time.
          stop()
          resolve(answer)
        }, rejectRun)
      }),
    release: () => {
      stop()
      signal.removeEventListener('abort', onAbort)
    },
  }
}
