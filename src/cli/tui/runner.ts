import { setTimeout as sleep } from 'node:timers/promises'
import { piecesOf } from '../../core/search-answer.ts'
import { arrived, previewing, prompted } from './arrivals.ts'
import { clustersOf, wordsIn } from './cells.ts'
import type { Input } from './input.ts'
import { askFile, helpHeight, keyed, typed } from './keys.ts'
import { chosen, chosenRow, hitRows, layoutOf, topFor, treeRows } from './layout.ts'
import type { Loader } from './loading.ts'
import { spotOf, towards } from './moves.ts'
import { type Screen, screenOf } from './screen.ts'
import { type Effect, type Event, type State, type StateChange, without } from './state.ts'
import { type Live, type Want, wantsOf, watchedBy } from './wants.ts'

/** Applies events to the state, fetches its wants, and draws its screen. */
export type Runner = ReturnType<typeof createRunner>

interface RunnerParts {
  readonly loader: Loader
  readonly live: Live
  /** Draws the screen. Resolves when the terminal has taken it. */
  draw(screen: Screen): Promise<void>
  /** Performs an action outside of the state. */
  act(effect: Effect, state: State): void
}

/** Delay before a preview is fetched, in milliseconds, so that scrolling does not fetch every entry. */
const fetchDelayMs = 60
/** Minimum time between two drawn screens, in milliseconds. */
const frameIntervalMs = 15

export function createRunner(initial: State, { loader, live, draw, act }: RunnerParts) {
  let state = initial
  let isOver = false
  let isDrawing = false
  let isDirty = false
  const running = new Map<string, AbortController>()

  const fetch = async (want: Want, controller: AbortController): Promise<void> => {
    const { signal } = controller
    if (want.kind === 'preview') await sleep(fetchDelayMs)
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
    // Events within one frame are drawn together, and a slow terminal gets only the last screen.
    while (isDirty && !isOver) {
      await sleep(frameIntervalMs)
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
    get state(): State {
      return state
    },
    dispatch,
    /** Aborts all fetches, and ends the subscriptions. */
    close: () => {
      isOver = true
      for (const controller of running.values()) controller.abort()
      live.close()
    },
  }
}

/** Applies an event to a state, and restores the invariants of the state. */
function update(state: State, event: Event): StateChange {
  const step = stepOf(state, event)
  return { ...step, state: settle(step.state) }
}

function stepOf(state: State, event: Event): StateChange {
  if (event.kind === 'key' || event.kind === 'text' || event.kind === 'paste')
    return inputStep(without(state, 'notice'), event)
  if (event.kind === 'resize') return { state: { ...state, size: event.size } }
  if (event.kind === 'notice') return { state: { ...state, notice: event } }
  return { state: arrived(state, event) }
}

function inputStep(state: State, input: Input): StateChange {
  if (state.prompt !== undefined) return prompted(state, state.prompt, input)
  if (input.kind === 'key') {
    if (state.help !== undefined) return helped(state, state.help, input.name)
    return state.isEnding && !input.ctrl ? { state: without(state, 'isEnding') } : keyed(state, input)
  }
  // Outside of a prompt, ignore pasted text: its characters are not meant as commands.
  if (input.kind === 'paste') return { state }
  const [first, ...rest] = clustersOf(input.text)
  if (first === undefined) return { state }
  const step = characterStep(state, first.text)
  if (step.effect !== undefined || rest.length === 0) return step
  const more = rest.map(({ text }) => text).join('')
  return update(step.state, { kind: 'text', text: more })
}

function characterStep(state: State, character: string): StateChange {
  if (state.help !== undefined) return helped(state, state.help, character.normalize('NFKC'))
  return state.isEnding ? ended(without(state, 'isEnding'), character.normalize('NFKC')) : typed(state, character)
}

/** Applies a key while the help is open: it scrolls or closes the help. */
function helped(state: State, help: number, name: string): StateChange {
  const height = layoutOf(state).height
  const most = Math.max(0, helpHeight - height)
  const by = { up: -1, k: -1, down: 1, j: 1, pageup: -height, pagedown: height, ' ': height }[name]
  return {
    state: by === undefined ? without(state, 'help') : { ...state, help: Math.max(0, Math.min(most, help + by)) },
  }
}

function ended(state: State, answer: string): StateChange {
  if (answer === 'q' || answer === 'n') return { state, effect: { kind: 'quit' } }
  if (answer === 'p') return { state, effect: { kind: 'quit', print: true } }
  return answer === 'e' || answer === 'y' ? askFile(state) : { state }
}

/**
 * Restores the invariants of the state: the selected line exists and is on the screen, and the preview shows the selected
 * resource.
 */
function settle(state: State): State {
  return withPreview(onScreen(placed(towards(state))))
}

/** Finds the selected line again in a tree that may have changed, and selects it. */
function placed(state: State): State {
  const rows = treeRows(state)
  const { at } = state
  const isIt = (index: number) =>
    rows[index]?.resource.uri === at.uri && (rows[index]?.says !== undefined) === (at.says ?? false)
  let index = at.index
  if (state.toEnd) index = rows.length - 1
  else if (!isIt(index)) index = rows.findIndex((_, candidate) => isIt(candidate))
  if (index < 0) index = Math.min(at.index, rows.length - 1)
  index = Math.max(0, index)
  return { ...state, at: spotOf(index, rows[index]) }
}

function onScreen(state: State): State {
  const { height } = layoutOf(state)
  const { basket, found } = state
  const hits = Math.max(1, Math.floor((height - 1) / hitRows))
  return {
    ...state,
    top: topFor(state.top, state.at.index, treeRows(state).length, height),
    basket: { ...basket, top: topFor(basket.top, basket.at, basket.items.length, Math.max(1, height - 2)) },
    ...(found === undefined ? {} : { found: { ...found, top: topFor(found.top, found.at, found.hits.length, hits) } }),
  }
}

function withPreview(state: State): State {
  // A small screen shows one pane at a time. A hidden preview is not read.
  if (layoutOf(state).previewColumns === 0) return state
  const isSaying = state.list === 'tree' && state.visiting === undefined && chosenRow(state)?.says !== undefined
  const hit = state.list === 'found' ? state.found?.hits[state.found.at] : undefined
  const words = hit === undefined ? [] : wordsIn(piecesOf(hit.snippet))
  return previewing(state, isSaying ? undefined : chosen(state)?.uri, words)
}
