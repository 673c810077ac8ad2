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
 * may not see are left out either way. A value is one that a client can put into the template: of `100%.md`, `{+path}` has the
 * value `100%25.md`. What was typed may be written so, or as the name itself.
 */
export async function completePaths(
  mount: Mounted,
  template: MountTemplate,
  request: ViewCompletionRequest,
  context: Context,
): Promise<Completion> {
  const { name, value } = request.argument
  const { compiled } = template
  if (!compiled.variables.includes(name)) return { values: [] }
  const complete = (typed: string) =>
    completeText(mount, template, { ...request, argument: { name, value: typed } }, context)
  const plain = compiled.textFrom(name, value)
  const decoded = await complete(plain)
  const { values, ...rest } = decoded.values.length === 0 && plain !== value ? await complete(value) : decoded
  return { values: values.slice(0, maxCompletions).map((text) => compiled.valueFor(name, text)), ...rest }
}

/** Completes what was typed as a part of a name; the values are names too. */
async function completeText(
  mount: Mounted,
  template: MountTemplate,
  request: ViewCompletionRequest,
  context: Context,
): Promise<Completion> {
  const filled = request.arguments ?? new Map<string, string>()
  const { complete } = mount.provider
  if (complete === undefined) return completeFromTree(mount, template, request, filled, context)
  const texts = new Map(Array.from(filled, ([name, value]) => [name, template.compiled.textFrom(name, value)]))
  const ask = (argument: ViewCompletionRequest['argument']) =>
    complete({ template: template.declared.template, argument, arguments: texts }, context).catch(whereNothingIs)
  const isOpen = mount.reach(context.principal, '') === 'all'
  const known = await (isOpen ? ask(request.argument) : completeVisible(mount, template, request, ask, context))
  return known ?? completeFromTree(mount, template, request, filled, context)
}

/** What is filled in already may lead to nothing: then there is nothing to propose. */
function whereNothingIs(error: unknown): Completion {
  if (isResourceError(error, 'not-found')) return { values: [] }
  throw error
}

/** So many entries are looked at to find out which values lead to something visible: for all of them, and for each. */
const [maxLooks, maxLooksEach] = [2000, 500]

/**
 * What the provider knows, without what the principal may not see: a value is shown when the path that it leads to is
 * visible, or something in the directory. Values that stand in no path may come from anywhere, and are not shown.
 */
async function completeVisible(
  mount: Mounted,
  template: MountTemplate,
  { argument, arguments: filled = new Map() }: ViewCompletionRequest,
  ask: (argument: ViewCompletionRequest['argument']) => Promise<Completion | undefined>,
  context: Context,
): Promise<Completion | undefined> {
  const { principal } = context
  const place = placeOf(template, argument.name, filled)
  if (place === undefined) return { values: [] }
  const typed = place.head + argument.value
  const directory = typed.slice(0, typed.lastIndexOf('/') + 1)
  // As for what is read: of a directory in which nothing may be seen, the source is not asked by its name.
  const isClosed = mount.reach(principal, directory) === 'none'
  const value = isClosed ? mount.asked(typed, principal).path.slice(place.head.length) : argument.value
  const known = await ask({ ...argument, value })
  if (known === undefined) return undefined
  const { values } = known
  if (isClosed) return { values: [] }

  let looks = maxLooks
  const isVisible = async (found: string): Promise<boolean> => {
    const { path, whole } = pathOf(
      template,
      { ...Object.fromEntries(filled), [argument.name]: template.compiled.valueFor(argument.name, found) },
      place.head + found,
    )
    if (whole) return mount.access(principal, path)
    const below = path.endsWith('/') ? path : `${path}/`
    const reach = mount.reach(principal, below)
    if (reach !== 'some') return reach === 'all'
    const least = looks - maxLooksEach
    for await (const entry of mount.provider.list({ prefix: below }, context)) {
      if (mount.access(principal, entry.path)) return true
      if (--looks <= Math.max(0, least)) break
    }
    return false
  }
  const visible: string[] = []
  for (const found of values) {
    if (visible.length === maxCompletions || looks <= 0) break
    if (await isVisible(found)) visible.push(found)
  }
  return { values: visible }
}

/** The path that a template leads to, and whether that is the whole of it: nothing of it is still to be filled in. */
function pathOf(
  { compiled }: MountTemplate,
  given: Readonly<Record<string, string>>,
  begun: string,
): { readonly path: string; readonly whole: boolean } {
  const before = (values: Readonly<Record<string, string>>) => compiled.expand(values).split('?', 1)[0] ?? ''
  const isOpen = compiled.variables.some(
    (name) => given[name] === undefined && before({ ...given, [name]: marker }).includes(marker),
  )
  if (isOpen || begun.endsWith('/')) return { path: begun, whole: false }
  return { path: decodeURIComponent(before(given)), whole: true }
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
