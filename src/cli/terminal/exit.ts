import { type ErrorKind, isResourceError, ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'

/** Exit codes of the process, as in docs/cli.md. */
export const exitCodes = { ok: 0, failed: 1, usage: 2, budget: 3, notFound: 4, refused: 5 } as const

export const exitCodeHelp = `
Exit codes: 0 success; 1 failure, or a fault was found; 2 the command line is wrong;
3 a required resource does not fit into the budget (pack); 4 nothing is at that URI;
5 a server requires authentication, or refuses you.`

/** @param lines The examples, one on a line, after a line break. */
export function helpExamples(lines: string): ['after', string] {
  return ['after', `\nExamples:${lines}\n${exitCodeHelp}`]
}

export class CommandError extends Error {
  readonly exitCode: number

  constructor(exitCode: number, message: string) {
    super(message)
    this.name = 'CommandError'
    this.exitCode = exitCode
  }
}

/** Returns the error of a failure that is no fault of the command line. */
export function commandFailure(message: string): CommandError {
  return new CommandError(exitCodes.failed, message)
}

export function usageError(message: string): CommandError {
  return new CommandError(exitCodes.usage, message)
}

/** Turns a {@link ResourceError} into a failure, whatever its kind. @throws any other error unchanged */
export function rethrowAsFailure(error: unknown): never {
  throw isResourceError(error) ? commandFailure(error.message) : error
}

export const collectValues = (word: string, words: readonly string[] = []): readonly string[] => [...words, word]

export function explainError(error: unknown): { readonly message: string; readonly exitCode: number } {
  if (error instanceof CommandError) return { message: error.message, exitCode: error.exitCode }
  if (error instanceof ResourceError)
    return { message: error.message, exitCode: isRefusal(error) ? exitCodes.refused : exitCodeOf(error.kind) }
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return { message: `This is a bug in hikidashi. Please report it: ${reason}`, exitCode: exitCodes.failed }
}

/** Whether a server has answered HTTP 401 or 403. */
function isRefusal(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++)
    if ('status' in at && (at.status === 401 || at.status === 403)) return true
  return false
}

function exitCodeOf(kind: ErrorKind): number {
  switch (kind) {
    case 'invalid':
      return exitCodes.usage
    case 'not-found':
      return exitCodes.notFound
    case 'too-large':
    case 'unavailable':
    case 'internal':
      return exitCodes.failed
  }
}

export type StopHandlers = ReturnType<typeof installStopHandlers>

const ignore = () => {}

const signals = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

/** Turns SIGTERM, SIGINT and SIGHUP into an abort, so that requests in flight can be answered first. */
export function installStopHandlers(log: Log) {
  const controller = new AbortController()
  const onSignal = (name: keyof typeof signals) => {
    // 128 + the number of the signal, as shells expect.
    if (controller.signal.aborted) process.exit(128 + signals[name])
    log('info', 'stopping', { signal: name })
    controller.abort()
  }
  const onException = (error: unknown) => {
    log('error', 'stopped by a bug in hikidashi', { error })
    process.exit(1)
  }
  const onRejection = (error: unknown) => log('error', 'an unhandled rejection', { error })
  for (const name of Object.keys(signals)) process.on(name, onSignal)
  // By default, Node opens a debugger on this signal, which can read the memory of the process.
  process.on('SIGUSR1', ignore)
  process.on('uncaughtException', onException)
  process.on('unhandledRejection', onRejection)
  return {
    signal: controller.signal,
    stopped: new Promise<undefined>((resolve) => controller.signal.addEventListener('abort', () => resolve(undefined))),
    done: () => {
      for (const name of Object.keys(signals)) process.off(name, onSignal)
      process.off('SIGUSR1', ignore)
      process.off('uncaughtException', onException)
      process.off('unhandledRejection', onRejection)
    },
  }
}
