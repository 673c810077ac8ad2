import { type ErrorKind, isResourceError, ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'

/** Exit codes of the process. Documented in `--help` and docs/cli.md. */
export const exitCodes = { ok: 0, failed: 1, usage: 2, budget: 3, notFound: 4, refused: 5 } as const

export const exitCodeHelp = `
Exit codes: 0 success; 1 failure, or a fault was found; 2 the command line is wrong;
3 a required resource does not fit into the budget (pack); 4 nothing is at that URI;
5 a server requires authentication, or refuses you.`

/** Returns the arguments of `addHelpText` for the end of a command's help: its examples, one on a line, and the exit codes. */
export function helpExamples(lines: string): ['after', string] {
  return ['after', `\nExamples:${lines}\n${exitCodeHelp}`]
}

/** An error with a message for the user, and the exit code of the process. */
export class CommandError extends Error {
  readonly exitCode: number

  constructor(exitCode: number, message: string) {
    super(message)
    this.name = 'CommandError'
    this.exitCode = exitCode
  }
}

/** Returns the error of a failure that is not a fault of the command line. */
export function commandFailure(message: string): CommandError {
  return new CommandError(exitCodes.failed, message)
}

/** Returns the error for a wrong command line. */
export function usageError(message: string): CommandError {
  return new CommandError(exitCodes.usage, message)
}

/** Throws a {@link ResourceError} as a failure, because it is not a fault of the command line; any other error unchanged. */
export function rethrowAsFailure(error: unknown): never {
  throw isResourceError(error) ? commandFailure(error.message) : error
}

/** Collects the values of a repeatable option. */
export const collectValues = (word: string, words: readonly string[] = []): readonly string[] => [...words, word]

/** Returns the message for an error, without a stack trace, and the exit code. */
export function explainError(error: unknown): { readonly message: string; readonly exitCode: number } {
  if (error instanceof CommandError) return { message: error.message, exitCode: error.exitCode }
  if (error instanceof ResourceError)
    return { message: error.message, exitCode: isRefusal(error) ? exitCodes.refused : exitCodeOf(error.kind) }
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return { message: `This is a bug in hikidashi. Please report it: ${reason}`, exitCode: exitCodes.failed }
}

/** Whether a server requires a token, or another one (HTTP 401 or 403). */
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

/**
 * Turns SIGTERM, SIGINT and SIGHUP into an abort, so that requests in flight can be answered first. A second signal, or an uncaught
 * exception, ends the process at once.
 */
export function installStopHandlers(log: Log) {
  const controller = new AbortController()
  const onSignal = (name: keyof typeof signals) => {
    // A second signal ends the process at once, with 128 + its number as shells expect.
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
  // By default, Node would open a debugger on this signal, which can read all memory of the process.
  process.on('SIGUSR1', ignore)
  process.on('uncaughtException', onException)
  process.on('unhandledRejection', onRejection)
  return {
    signal: controller.signal,
    stopped: new Promise<undefined>((resolve) => controller.signal.addEventListener('abort', () => resolve(undefined))),
    /** Removes the handlers of signals, exceptions and rejections. */
    done: () => {
      for (const name of Object.keys(signals)) process.off(name, onSignal)
      process.off('SIGUSR1', ignore)
      process.off('uncaughtException', onException)
      process.off('unhandledRejection', onRejection)
    },
  }
}
