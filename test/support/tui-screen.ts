import { explain } from '../../src/cli/terminal/exit.ts'
import type { Row } from '../../src/cli/tui/cells.ts'
import { createInputDecoder } from '../../src/cli/tui/input.ts'
import { createLoader } from '../../src/cli/tui/loading.ts'
import { createRunner } from '../../src/cli/tui/runner.ts'
import { type Screen, screenOf } from '../../src/cli/tui/screen.ts'
import { begin, type Effect, type InitialState, type State } from '../../src/cli/tui/state.ts'
import { createLive } from '../../src/cli/tui/wants.ts'
import type { View } from '../../src/core/view.ts'

/** The terminal interface over a view, without a terminal: keys go in, and screens come out as text. */
export interface ShownScreen {
  readonly state: State
  readonly effects: readonly Effect[]
  /** Sends what a keyboard would. */
  press(keys: string): void
  resize(columns: number, rows: number): void
  text(): string
  screen(): Screen
  /** Resolves with the screen once it shows what is looked for. */
  until(pattern: RegExp | ((state: State) => boolean)): Promise<string>
  close(): void
}

/** The text of a row without styles. */
export function textOf(row: Row): string {
  return row.map(({ text }) => text).join('')
}

export function openScreen(view: View, beginning: Partial<InitialState> = {}): ShownScreen {
  const effects: Effect[] = []
  const looks = new Set<() => void>()
  const decoder = createInputDecoder()
  const loader = createLoader(view, (error) => explain(error).message)
  const initial = begin({
    title: 'test',
    size: { columns: 80, rows: 16 },
    budget: 32_000,
    format: 'markdown',
    isPiped: false,
    ...beginning,
  })
  const runner = createRunner(initial, {
    loader,
    live: createLive(view, (uris) => runner.dispatch({ kind: 'changed', uris })),
    draw: async () => {
      for (const look of looks) look()
    },
    act: (effect) => {
      effects.push(effect)
      if (effect.kind === 'gather') loader.gather(effect.uri).then((event) => runner.dispatch(event))
      if (effect.kind === 'goto') runner.dispatch({ kind: 'meant', uri: effect.text })
    },
  })
  const text = () =>
    screenOf(runner.state)
      .rows.map((row) => textOf(row).trimEnd())
      .join('\n')
  return {
    get state() {
      return runner.state
    },
    effects,
    press: (keys) => {
      for (const input of [...decoder.take(Buffer.from(keys)), ...decoder.settle()]) runner.dispatch(input)
    },
    resize: (columns, rows) => runner.dispatch({ kind: 'resize', size: { columns, rows } }),
    text,
    screen: () => screenOf(runner.state),
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`There was no ${pattern} for long:\n${text()}`)), 10_000)
        const look = () => {
          const isThere = typeof pattern === 'function' ? pattern(runner.state) : pattern.test(text())
          if (!isThere) return
          clearTimeout(timer)
          looks.delete(look)
          resolve(text())
        }
        looks.add(look)
        look()
      }),
    close: runner.close,
  }
}
