import { type Io, type StatusLine, statusLine } from './io.ts'

export type Progress = ReturnType<typeof createProgress>

interface ProgressState {
  readonly done?: number
  readonly total?: number | undefined
  /** Name of the counted items, such as `resources`, or of the current step. */
  readonly what?: string
}

export interface ProgressOptions extends ProgressState {
  /** By default with separators, such as `1,290`. */
  readonly format?: (value: number) => string
  /** Shows progress even if the data goes to the same terminal. This suits commands that print little. */
  readonly besideOutput?: boolean
  /**
   * Writes a whole line every few seconds if standard error is no terminal that can erase a line. By default no
   * progress is shown there.
   */
  readonly writeLine?: (text: string) => void
  readonly line?: StatusLine
  readonly now?: () => number
  readonly env?: NodeJS.ProcessEnv
}

const firstDelayMs = 1000
const intervalMs = 120
/** Whole lines are not erased, so they come more slowly. */
const firstLineDelayMs = 3000
const lineIntervalMs = 5000

/** Shows nothing if the data goes to the same terminal, unless `besideOutput` is set. */
export function createProgress(io: Pick<Io, 'saysToTerminal' | 'out'>, options: ProgressOptions = {}) {
  const { line = statusLine, now = Date.now, env = process.env, format = formatNumber, besideOutput = false } = options
  const isTerminal = io.saysToTerminal && env.TERM !== 'dumb'
  const { writeLine } = options
  if (isTerminal ? io.out.isTerminal && !besideOutput : writeLine === undefined)
    return { add: () => {}, set: () => {}, end: () => {} }
  const start = now()
  let { done, total, what = 'resources' } = options
  let next = start + (isTerminal ? firstDelayMs : firstLineDelayMs)
  let turn = 0
  const tell = () => {
    const time = now()
    if (time < next) return
    next = time + (isTerminal ? intervalMs : lineIntervalMs)
    if (isTerminal) line.show(formatProgressLine({ done, total, what, format, elapsedMs: time - start, turn: turn++ }))
    else writeLine?.(plainLineOf({ done, total, what, format }))
  }
  const timer = setInterval(tell, intervalMs)
  timer.unref()
  const onInterrupt = () => {
    end()
    // Other listeners decide whether the process ends.
    if (process.listenerCount('SIGINT') === 0) process.kill(process.pid, 'SIGINT')
  }
  process.on('SIGINT', onInterrupt)
  const end = () => {
    process.off('SIGINT', onInterrupt)
    clearInterval(timer)
    if (isTerminal) line.clear()
  }
  return {
    add: (count: number) => {
      done = (done ?? 0) + count
      tell()
    },
    set: (state: ProgressState) => {
      if (state.done !== undefined) done = state.done
      if ('total' in state) total = state.total
      if (state.what !== undefined) what = state.what
      tell()
    },
    end,
  }
}

interface ProgressLine {
  readonly done: number | undefined
  readonly total: number | undefined
  readonly what: string
  readonly format: (value: number) => string
  readonly elapsedMs: number
  readonly turn: number
}

const spinner = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'] as const
const barWidth = 24

function formatProgressLine({ done, total, what, format, elapsedMs, turn }: ProgressLine): string {
  const sign = spinner[turn % spinner.length] ?? ''
  if (done === undefined) return `${sign} ${what} …`
  if (total === undefined || total <= 0) return `${sign} ${format(done)} ${what} …`
  const part = Math.min(1, done / total)
  const full = Math.round(part * barWidth)
  // ASCII: the bars of Unicode take two columns on many terminals in East Asia.
  const bar = `[${'='.repeat(Math.max(0, full - 1))}${full > 0 ? '>' : ''}${' '.repeat(barWidth - full)}]`
  const remainingText = done > 0 && part < 1 ? `, ${formatWait((elapsedMs / done) * (total - done))} left` : ''
  return `${bar} ${String(Math.floor(part * 100)).padStart(3)}%  ${format(done)} of ${format(total)}${what === '' ? '' : ` ${what}`}${remainingText}`
}

function plainLineOf({ done, total, what, format }: Pick<ProgressLine, 'done' | 'total' | 'what' | 'format'>): string {
  const extent = done === undefined ? [] : [total === undefined ? format(done) : `${format(done)} of ${format(total)}`]
  return `${[...extent, what].filter((part) => part !== '').join(' ')} …`
}

function formatNumber(value: number): string {
  return value.toLocaleString('en')
}

/** Formats a duration: `8 s`, `3 min`, `2 h`. */
function formatWait(milliseconds: number): string {
  const seconds = Math.max(1, Math.round(milliseconds / 1000))
  if (seconds < 90) return `${seconds} s`
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}
