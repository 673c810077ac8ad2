import type { Live } from './live.ts'
import type { Loader } from './loading.ts'
import type { Screen } from './screen.ts'
import { screenOf } from './screen.ts'
import type { Effect, Event, State } from './state.ts'
import { update } from './update.ts'
import { type Want, wantsOf, watchedBy } from './wants.ts'

/** Runs the effects of states: fetches their wants, and draws their screens. */
export interface Runner {
  readonly state: State
  dispatch(event: Event): void
  /** Gives up all that is being fetched. */
  close(): void
}

export interface RunnerParts {
  readonly loader: Loader
  readonly live: Live
  /** Resolves once it is on the screen. */
  draw(screen: Screen): Promise<void>
  /** Does what is to be done once. */
  act(effect: Effect, state: State): void
}

/** Delay before a fetch, in milliseconds, so that passed entries are not fetched. */
const patience = 60
/** The time between two screens, in milliseconds. */
const frame = 15

export function createRunner(initial: State, { loader, live, draw, act }: RunnerParts): Runner {
  let state = initial
  let isOver = false
  let isDrawing = false
  let isDirty = false
  const running = new Map<string, AbortController>()

  const fetch = async (want: Want, controller: AbortController): Promise<void> => {
    const { signal } = controller
    if (want.kind === 'preview') await sleep(patience)
    const events = signal.aborted ? [] : await loader.fetch(want, state, signal)
    if (running.get(want.key) === controller) running.delete(want.key)
    if (signal.aborted || isOver) return
    for (const event of events) dispatch(event)
  }

  const reconcile = (): void => {
    const wants = new Map(wantsOf(state).map((want) => [want.key, want]))
    for (const [key, controller] of running) {
      if (wants.has(key)) continue
      running.delete(key)
      controller.abort()
    }
    for (const want of wants.values()) {
      if (running.has(want.key)) continue
      const controller = new AbortController()
      running.set(want.key, controller)
      void fetch(want, controller)
    }
    live.watch(watchedBy(state))
  }

  const show = async (): Promise<void> => {
    isDirty = true
    if (isDrawing) return
    isDrawing = true
    // Events within one frame are drawn once, and a slow terminal gets the last screen only.
    while (isDirty && !isOver) {
      await sleep(frame)
      isDirty = false
      if (!isOver) await draw(screenOf(state))
    }
    isDrawing = false
  }

  const dispatch = (event: Event): void => {
    if (isOver) return
    const { state: next, effect } = update(state, event)
    const isSame = next === state
    state = next
    if (effect !== undefined) act(effect, state)
    if (isOver || isSame) return
    reconcile()
    void show()
  }

  reconcile()
  void show()
  return {
    get state() {
      return state
    },
    dispatch,
    close: () => {
      isOver = true
      for (const controller of running.values()) controller.abort()
      live.close()
    },
  }
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
