import { fallbackTo, invalid } from './errors.ts'
import type { Mounted, MountTemplate } from './mount.ts'
import { baseName, canonicalPath, isPath, mayHaveOtherSpellings } from './path.ts'
import type { Completion, Context } from './provider.ts'
import { iterateChildren } from './tree.ts'
import type { ViewCompletionRequest } from './view.ts'

/** Maximum number of values of one completion (MCP specification, server/utilities/completion). */
export const maxCompletions = 100

/** Completes a typed text with values that begin with it, at most {@link maxCompletions}. */
export function completeFromValues(values: readonly string[], typed = ''): Completion {
  const begin = canonicalPath(typed)
  const fitting = values.filter((value) => canonicalPath(value).startsWith(begin))
  return { values: fitting.slice(0, maxCompletions), total: fitting.length, hasMore: fitting.length > maxCompletions }
}

const marker = 'hikidashi0marker'

/**
 * Completes one variable of a template of any mount.
 * @param isVisible Whether the principal may see anything in a mount.
 * @throws ResourceError `invalid` for a template that no mount has, or only a mount in which the principal may see
 * nothing.
 */
export async function completeTemplate(
  mounts: readonly Mounted[],
  request: ViewCompletionRequest,
  context: Context,
  isVisible: (mount: Mounted, context: Context) => Promise<boolean>,
): Promise<Completion> {
  for (const mount of mounts) {
    // A template of a mount that the principal may not see must look like an unknown one.
    if (mount.isHidden(context.principal) || !request.uriTemplate.startsWith(mount.address.text)) continue
    const template = await mount.templateOf(request.uriTemplate, context)
    if (template === undefined) continue
    const completion = await completePaths(mount, template, request, context)
    if (completion.values.length > 0 || (await isVisible(mount, context))) return completion
  }
  throw invalid('There is no such resource template. List the templates again.', 'unknown-name')
}

/**
 * A value is escaped so that a client can put it into the template: for `100%.md`, `{+path}` has the value `100%25.md`.
 * The client may have typed the escaped form or the name itself.
 */
async function completePaths(
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

/** The typed text and the proposed values are not escaped. */
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
  const completion = await (isOpen ? ask(request.argument) : completeVisible(mount, template, request, ask, context))
  return completion ?? completeFromTree(mount, template, request, filled, context)
}

const whereNothingIs = fallbackTo<Completion>({ values: [] }, 'not-found')

/** Maximum number of entries that are read to decide which values are visible: for all values, and for one. */
const [maxLooks, maxLooksEach] = [2000, 500]

/**
 * Returns the provider's values without those that the principal may not see. A variable outside of the path gets no
 * values, since they may come from any entry.
 */
async function completeVisible(
  mount: Mounted,
  template: MountTemplate,
  { argument, arguments: filled = new Map() }: ViewCompletionRequest,
  ask: (argument: ViewCompletionRequest['argument']) => Promise<Completion | undefined>,
  context: Context,
): Promise<Completion | undefined> {
  const { principal } = context
  const position = positionOf(template, argument.name, filled)
  if (position === undefined) return { values: [] }
  const typed = position.head + argument.value
  const directory = typed.slice(0, typed.lastIndexOf('/') + 1)
  // As in a read, the source does not learn the name of a directory in which the principal may see nothing.
  const isClosed = mount.reach(principal, directory) === 'none'
  const value = isClosed ? mount.asked(typed, principal).path.slice(position.head.length) : argument.value
  const completion = await ask({ ...argument, value })
  if (completion === undefined) return undefined
  const { values } = completion
  if (isClosed) return { values: [] }

  let looks = maxLooks
  const isVisible = async (value: string): Promise<boolean> => {
    const { path, whole } = expandTemplatePath(
      template,
      { ...Object.fromEntries(filled), [argument.name]: template.compiled.valueFor(argument.name, value) },
      position.head + value,
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
  for (const candidate of values) {
    if (visible.length === maxCompletions || looks <= 0) break
    if (await isVisible(candidate)) visible.push(candidate)
  }
  return { values: visible }
}

/**
 * Returns the path that a template leads to: `beginning` if that ends in `/` or a variable of the path has no value
 * yet.
 */
function expandTemplatePath(
  { compiled }: MountTemplate,
  argumentValues: Readonly<Record<string, string>>,
  beginning: string,
): { readonly path: string; readonly whole: boolean } {
  const before = (values: Readonly<Record<string, string>>) => compiled.expand(values).split('?', 1)[0] ?? ''
  const isOpen = compiled.variables.some(
    (name) => argumentValues[name] === undefined && before({ ...argumentValues, [name]: marker }).includes(marker),
  )
  if (isOpen || beginning.endsWith('/')) return { path: beginning, whole: false }
  return { path: decodeURIComponent(before(argumentValues)), whole: true }
}

/**
 * `head` is the path before the variable, decoded; `spans`, whether the value of the variable may contain `/`.
 * Undefined for a variable outside of the path.
 */
function positionOf(template: MountTemplate, name: string, filled: ReadonlyMap<string, string>) {
  const expand = (value: string) => template.compiled.expand({ ...Object.fromEntries(filled), [name]: value })
  const expanded = expand(marker)
  const at = expanded.indexOf(marker)
  const head = expanded.slice(0, at)
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
  const position = positionOf(template, argument.name, filled)
  if (position === undefined || (!position.spans && argument.value.includes('/'))) return { values: [] }
  const typed = position.head + argument.value
  const directory = typed.slice(0, typed.lastIndexOf('/') + 1)
  const stem = typed.slice(directory.length)
  // The typed text need not be a path yet, but its directory must be.
  if (!isPath(directory) || !typed.isWellFormed()) return { values: [] }

  const values: string[] = []
  const take = (path: string) =>
    values.push(position.spans || !path.endsWith('/') ? path.slice(position.head.length) : baseName(path))
  const list = mount.list(context)
  if (stem !== '' && (await exists(mount, typed, context))) take(typed)
  // The listing resumes strictly after the stem, where the names that begin with it are.
  for await (const child of iterateChildren(list, directory, stem === '' ? undefined : typed)) {
    context.signal.throwIfAborted()
    if (!child.path.startsWith(typed)) break
    if (values.length === maxCompletions) return { values, hasMore: true }
    take(child.path)
  }
  if (values.length > 0 || !mayHaveOtherSpellings(typed)) return completeFromValues(values)

  // The source may list the directory, and the names in it, in another composition of their letters.
  const spelling = directory === '' ? '' : ((await tryFindEntry(mount, directory, context))?.path ?? directory)
  const begin = canonicalPath(typed)
  for await (const child of iterateChildren(list, spelling)) {
    context.signal.throwIfAborted()
    if (!canonicalPath(child.path).startsWith(begin)) continue
    if (values.length === maxCompletions) return { values, hasMore: true }
    take(`${directory}${child.path.slice(spelling.length)}`)
  }
  return completeFromValues(values)
}

async function exists(mount: Mounted, path: string, context: Context): Promise<boolean> {
  return isPath(path) && (await tryFindEntry(mount, path, context))?.path === path
}

const tryFindEntry = (mount: Mounted, path: string, context: Context) =>
  mount.find(path, context).catch(fallbackTo(undefined, 'invalid'))
