import { isResourceError } from '../../core/errors.ts'
import { comparePaths, isPath } from '../../core/path.ts'
import type { Completion, CompletionRequest, Context, Provider } from '../../core/provider.ts'
import { children } from '../../core/tree.ts'
import type { Desk } from './desk.ts'
import type { FormatOf } from './formats.ts'

const maxValues = 100

/** Completes the variables of the template of settings: paths, names in pointers, and what there is to be read as. */
export async function completeSettings(
  { argument, arguments: filled }: CompletionRequest,
  list: Provider['list'],
  { formatOf, desk }: { readonly formatOf: FormatOf; readonly desk: Desk },
  context: Context,
): Promise<Completion> {
  if (argument.name === 'path') return completePath(argument.value, list, context)
  if (argument.name === 'as') return all(['json'].filter((value) => value.startsWith(argument.value)))
  const path = filled.get('path') ?? ''
  const format = isPath(path) ? formatOf(path) : undefined
  if (argument.name !== 'pointer' || format === undefined) return all([])
  try {
    const { answer } = await desk.ask(path, format, { kind: 'names', typed: argument.value }, context)
    if (!('pointers' in answer)) return all([])
    return answer.hasMore ? { values: answer.pointers, hasMore: true } : all(answer.pointers)
  } catch (error) {
    // What cannot be read has nothing to complete; the reason comes when it is read.
    if (isResourceError(error) && error.kind !== 'unavailable') return all([])
    throw error
  }
}

function all(values: readonly string[]): Completion {
  return { values, total: values.length, hasMore: false }
}

/** Files and directories that begin as what is typed. */
async function completePath(typed: string, list: Provider['list'], context: Context): Promise<Completion> {
  const directory = typed.slice(0, typed.lastIndexOf('/') + 1)
  if (!isPath(directory) || !typed.isWellFormed()) return all([])
  const values: string[] = []
  for await (const child of children((query) => list(query, context), directory)) {
    context.signal.throwIfAborted()
    if (!child.path.startsWith(typed)) {
      if (comparePaths(child.path, typed) > 0) break
      continue
    }
    if (values.length === maxValues) return { values, hasMore: true }
    values.push(child.path)
  }
  return all(values)
}
