import type { Log, LogLevel } from '../../core/log.ts'
import type { Scrubber } from '../../core/scrub.ts'
import { type Io, writeError } from './io.ts'
import { escapeText } from './text.ts'

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

export const logLevels = [...levels, 'silent'] as const
export const logFormats = ['text', 'json'] as const

export interface LogOptions {
  readonly level: (typeof logLevels)[number]
  readonly format: (typeof logFormats)[number]
  readonly write: (line: string) => void
  readonly scrubber?: Scrubber
  readonly now?: () => Date
}

/** Maximum length of a log line, in characters. */
const maxLine = 8192
const reserved = new Set(['time', 'level', 'message'])

/** Creates a log of text lines on standard error, without the known secrets. */
export function createTextLog({ secrets }: Pick<Io, 'secrets'>, level: LogOptions['level']): Log {
  return createLog({ level, format: 'text', write: writeError, scrubber: secrets })
}

/** Creates a log of one line per event. */
export function createLog({ level, format, write, scrubber, now = () => new Date() }: LogOptions): Log {
  const least = level === 'silent' ? levels.length : levels.indexOf(level)
  return (at, message, fields = {}) => {
    if (levels.indexOf(at) < least) return
    const clean = cleanerOf(scrubber)
    const pairs = Object.entries(fields)
      .flatMap(([name, value]) => fieldsOf(name, value, least === 0))
      .map(([name, value]) => [clean(name), clean(value)] as const)
    const time = now().toISOString()
    const line =
      format === 'json'
        ? jsonLine({
            time,
            level: at,
            message: clean(message),
            ...Object.fromEntries(pairs.filter(([name]) => !reserved.has(name))),
          })
        : [
            time,
            at.padEnd(5),
            escapeText(clean(message)),
            ...pairs.map(([name, value]) => `${name}=${formatLogValue(value)}`),
          ].join(' ')
    write(`${format === 'text' && line.length > maxLine ? `${line.slice(0, maxLine)}…` : line}\n`)
  }
}

type LogValue = string | number | boolean | null | readonly string[]

function cleanerOf(scrubber: Scrubber | undefined): <T extends LogValue>(value: T) => T {
  if (scrubber === undefined) return (value) => value
  const clean = (value: LogValue): LogValue =>
    typeof value === 'string' ? scrubber.scrub(value) : Array.isArray(value) ? value.map(scrubber.scrub) : value
  return clean as <T extends LogValue>(value: T) => T
}

/**
 * Converts a field for the log. An error becomes its message and those of its causes; with `detailed`, also its stack.
 */
function fieldsOf(name: string, value: unknown, detailed: boolean): readonly (readonly [string, LogValue])[] {
  if (value === undefined) return []
  if (value instanceof Error) {
    const stack = detailed && value.stack !== undefined ? [[`${name}.stack`, value.stack] as const] : []
    return [[name, messagesOf(value).join(': ')], ...stack]
  }
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return [[name, value]]
  if (Array.isArray(value)) return [[name, value.map(String)]]
  try {
    return [[name, JSON.stringify(value) ?? String(value)]]
  } catch {
    return [[name, String(value)]]
  }
}

function messagesOf(error: Error): readonly string[] {
  const messages: string[] = []
  for (let at: unknown = error; at instanceof Error && messages.length < 5; at = at.cause) messages.push(at.message)
  return messages
}

function formatLogValue(value: LogValue): string {
  if (Array.isArray(value)) return value.map(formatLogValue).join(',')
  if (typeof value !== 'string') return String(value)
  if (/^[^\s"=,]+$/.test(value) && escapeText(value) === value) return value
  return escapeText(JSON.stringify(value))
}

/** If the line would be too long, its texts are shortened and its arrays emptied. */
function jsonLine(fields: Readonly<Record<string, LogValue>>): string {
  const line = JSON.stringify(fields)
  if (line.length <= maxLine) return line
  const share = Math.floor(maxLine / 2 / Object.keys(fields).length)
  const shortenValue = (value: LogValue) =>
    typeof value === 'string' ? value.slice(0, share) : Array.isArray(value) ? [] : value
  return JSON.stringify(Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, shortenValue(value)])))
}
