import { errorCodeOf, isResourceError, type ResourceError, tooLarge, unavailable } from '../../core/errors.ts'

/** Returns the error for a process of git that failed. `complaint` is its error output, which the error does not contain. */
export function explainFailure(name: string, code: number | null, complaint: string): ResourceError {
  if (complaint.includes('dubious ownership'))
    return unavailable(
      `${name} refuses the repository, since another user owns it. Run this server as its owner, or give it to this user (chown -R).`,
    )
  if (isOutOfMemory(complaint)) return tooMuchMemory()
  return unavailable(`${name} failed (${code === null ? 'it was killed' : `exit code ${code}`}).`)
}

/** Whether git ended because it reached its memory limit (`xmalloc` and `xmmap` of git's wrapper.c). */
export function isOutOfMemory(complaint: string): boolean {
  return /out of memory|cannot allocate memory/i.test(complaint)
}

/** Returns the error for an object that git cannot load within its memory limit. A retry does not help. */
export function tooMuchMemory(): ResourceError {
  return tooLarge('git exceeded its memory limit.')
}

/** Returns the first line of a text for the log, without control characters. */
export function firstLine(text: string): string {
  return (
    text
      .slice(0, 300)
      .split('\n')[0]
      ?.replace(/\p{Cc}/gu, '?') ?? ''
  )
}

/** Converts an error of the file system into one with a message for clients. */
export function explained(error: unknown): unknown {
  const code = errorCodeOf(error)
  if (isResourceError(error) || code === undefined) return error
  return unavailable(`The file system says ${code}.`, {}, error)
}
