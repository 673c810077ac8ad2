import { isResourceError } from '../../core/errors.ts'
import { isPath } from '../../core/path.ts'
import type { Completion, CompletionRequest, Context } from '../../core/provider.ts'
import type { Desk } from './desk.ts'
import type { FormatOf } from './formats.ts'

/** Completes names in pointers, and what there is to be read as. Paths are completed from the tree. */
export async function completeSettings(
  { argument, arguments: filled }: CompletionRequest,
  { formatOf, desk }: { readonly formatOf: FormatOf; readonly desk: Desk },
  context: Context,
): Promise<Completion | undefined> {
  if (argument.name === 'path') return undefined
  if (argument.name === 'as') return all(['json'].filter((value) => value.startsWith(argument.value)))
  const path = filled.get('path') ?? ''
  const format = isPath(path) ? formatOf(path) : undefined
  if (argument.name !== 'pointer' || format === undefined) return all([])
  try {
    const { answer } = await desk.ask(path, format, { kind: 'names', typed: argument.value }, context)
    if (!('pointers' in answer)) return all([])
    return answer.hasMore ? { values: answer.pointers, hasMore: true } : all(answer.pointers)
  } catch (error) {
    // A file that cannot be read has no completions; reading it reports the reason.
    if (isResourceError(error) && error.kind !== 'unavailable') return all([])
    throw error
  }
}

function all(values: readonly string[]): Completion {
  return { values, total: values.length, hasMore: false }
}
