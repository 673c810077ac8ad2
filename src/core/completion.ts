import { isResourceError } from './errors.ts'
import type { Mounted, MountTemplate } from './mount.ts'
import { baseName, isPath } from './path.ts'
import type { Completion, Context } from './provider.ts'
import { children } from './tree.ts'
import type { ViewCompletionRequest } from './view.ts'

/** The most values that one completion has (MCP specification, server/utilities/completion). */
export const maxCompletions = 100

/** Stands for the value to be completed while its place in the template is looked for. */
const marker = 'hikidashi0marker'

/**
 * Completes one variable of a template: by the provider if it knows how, else from the tree. Values that the principal
 * may not see are left out either way.
 */
export async function completePaths(
  mount: Mounted,
  template: MountTemplate,
  request: ViewCompletionRequest,
  context: Context,
): Promise<Completion> {
  const filled = request.arguments ?? new Map<string, string>()
  if (!template.compiled.variables.includes(request.argument.name)) return { values: [] }
  if (mount.provider.complete === undefined) return completeFromTree(mount, template, request, filled, context)
  const { values, ...rest } = await mount.provider.complete(
    { template: template.declared.template, argument: request.argument, arguments: filled },
    context,
  )
  if (!mount.restricted) return { values: values.slice(0, maxCompletions), ...rest }
  const { name } = request.argument
  // A value is shown when the path that it leads to is visible, as far as the path is known.
  const visible = values.filter((value) => {
    const place = placeOf(template, name, filled)
    return place === undefined || mount.access(context.principal, place.head + value)
  })
  return { values: visible.slice(0, maxCompletions) }
}

/** Where in a path a variable stands, once those before it are filled in. */
interface Place {
  /** The path before it, decoded. */
  readonly head: string
  /** Whether its value may hold `/`. */
  readonly spans: boolean
}

function placeOf(template: MountTemplate, name: string, filled: ReadonlyMap<string, string>): Place | undefined {
  const expand = (value: string) => template.compiled.expand({ ...Object.fromEntries(filled), [name]: value })
  const expanded = expand(marker)
  const at = expanded.indexOf(marker)
  const head = expanded.slice(0, at)
  // In the query there are no paths to complete.
  if (at === -1 || head.includes('?') || head.includes('#')) return undefined
  try {
    return { head: decodeURIComponent(head), spans: expand(`${marker}/${marker}`).includes(`${marker}/${marker}`) }
  } catch {
    return undefined
  }
}

async function completeFromTree(
  mount: Mounted,
  template: MountTemplate,
  { argument }: ViewCompletionRequest,
  filled: ReadonlyMap<string, string>,
  context: Context,
): Promise<Completion> {
  const place = placeOf(template, argument.name, filled)
  if (place === undefined || (!place.spans && argument.value.includes('/'))) return { values: [] }
  const typed = place.head + argument.value
  const directory = typed.slice(0, typed.lastIndexOf('/') + 1)
  const stem = typed.slice(directory.length)
  // What is being typed need not be a path yet; the directory that it begins with has to be.
  if (!isPath(directory) || !typed.isWellFormed()) return { values: [] }

  const values: string[] = []
  const take = (path: string) =>
    values.push(place.spans || !path.endsWith('/') ? path.slice(place.head.length) : baseName(path))
  const list = mount.list(context)
  if (stem !== '' && (await exists(mount, typed, context))) take(typed)
  // The listing resumes strictly after the stem, right where the names that begin with it are.
  for await (const child of children(list, directory, stem === '' ? undefined : typed)) {
    context.signal.throwIfAborted()
    if (!child.path.startsWith(typed)) break
    if (values.length === maxCompletions) return { values, hasMore: true }
    take(child.path)
  }
  return { values, total: values.length, hasMore: false }
}

async function exists(mount: Mounted, path: string, context: Context): Promise<boolean> {
  if (!isPath(path)) return false
  try {
    return (await mount.find(path, context)) !== undefined
  } catch (error) {
    if (isResourceError(error, 'invalid')) return false
    throw error
  }
}
