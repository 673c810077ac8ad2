import { type ErrorKind, ResourceError } from '../../core/errors.ts'

/** Exit codes of the process. Documented in `--help` and docs/cli.md. */
export const exitCodes = { ok: 0, failed: 1, usage: 2, budget: 3, notFound: 4, refused: 5 } as const

export const exitCodeHelp = `
Exit codes: 0 success; 1 failure, or a fault was found; 2 the command line is wrong;
3 a required resource does not fit into the budget (pack); 4 nothing is at that URI;
5 a server requires authentication, or refuses you.`

/** An error with a message for the user, and the code to end with. */
export class CommandError extends Error {
  readonly exitCode: number

  constructor(exitCode: number, message: string) {
    super(message)
    this.name = 'CommandError'
    this.exitCode = exitCode
  }
}

/** A failure that does not depend on the command line. */
export function failed(message: string): CommandError {
  return new CommandError(exitCodes.failed, message)
}

/** The command line is wrong. */
export function misused(message: string): CommandError {
  return new CommandError(exitCodes.usage, message)
}

/** Returns the message for an error, without a stack trace, and the exit code. */
export function explain(error: unknown): { readonly message: string; readonly exitCode: number } {
  if (error instanceof CommandError) return { message: error.message, exitCode: error.exitCode }
  if (error instanceof ResourceError)
    return { message: error.message, exitCode: isRefusal(error) ? exitCodes.refused : exitCodeOf(error.kind) }
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return { message: `This is a fault of hikidashi. Please report it: ${reason}`, exitCode: exitCodes.failed }
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
