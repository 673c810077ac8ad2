export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Where a fact for the operator goes. Never content, tokens or secrets. The receiver escapes what it prints. */
export type Log = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void
