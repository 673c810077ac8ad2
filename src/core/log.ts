export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Writes a fact to the operator's log. Never content, tokens or secrets. The receiver escapes what it prints. */
export type Log = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void
