import type { Catalog, Mount } from '../core/catalog.ts'
import { invalid, isResourceError, notFound } from '../core/errors.ts'
import { fitArguments } from '../core/fitted.ts'
import { objectSchema } from '../core/kit/object.ts'
import type { Context, Principal, Provider } from '../core/provider.ts'
import type { JsonObject, PostEndpoint, RecordStore, StoreOutcome, Tool } from '../core/tool.ts'
import { formatUri, parseAddress } from '../core/uri.ts'

export interface WritableMount extends Mount {
  readonly provider: Provider & RecordStore
  /** The roles that may write. If there are none, nobody may. */
  readonly writers: readonly string[]
}

export interface WriteAccess {
  tools(principal: Principal): readonly Tool[]
  /**
   * Returns the endpoint at a path below {@link postPathPrefix}; `undefined` if there is none that the principal may
   * post to.
   */
  postingAt(path: string, principal: Principal): PostEndpoint | undefined
}

export const postPathPrefix = '/results/'
const mostAtOnce = 100

export function createWriteAccess(catalog: Catalog): WriteAccess | undefined {
  const writable = catalog.mounts.filter(isWritable).filter(({ writers }) => writers.length > 0)
  if (writable.length === 0) return undefined
  const mayWrite = (principal: Principal) => (mount: WritableMount) =>
    (mount.writers.includes('*') || principal.roles.some((role) => mount.writers.includes(role))) &&
    catalog.allows(principal, formatUri(parseAddress(mount.address), 'results/'))

  /** A result that the principal may not see must not be replaced. */
  const checkVisible: CheckVisible = (mount, value, principal) => {
    const id = typeof value === 'object' && value !== null && 'id' in value ? value.id : undefined
    if (typeof id === 'string' && isWrittenAlike(id) && !catalog.allows(principal, resultUri(mount, id)))
      throw notFound('the id may not be seen')
  }

  const putAnalysis: Put = async (mount, value, { principal, signal }) => {
    signal.throwIfAborted()
    checkVisible(mount, value, principal)
    const outcome = await mount.provider.put(value)
    return { ...outcome, uri: resultUri(mount, outcome.id) }
  }

  return {
    tools: (principal) => {
      const mounts = writable.filter(mayWrite(principal))
      return mounts.length === 0 ? [] : [saveTool(mounts, putAnalysis)]
    },
    postingAt: (path, principal) => {
      const mount = writable.filter(mayWrite(principal)).find(({ address }) => postPath(address) === path)
      return mount === undefined ? undefined : postingTo(mount, putAnalysis, checkVisible)
    },
  }
}

export function isWritable(mount: Mount): mount is WritableMount {
  return mount.writers !== undefined && mount.provider.put !== undefined
}

export function postPath(address: string): string {
  return `${postPathPrefix}${parseAddress(address).text.replace(/^[^:]*:\/\/\/?/, '')}`
}

/** Whether an id needs no escape in a URI. */
function isWrittenAlike(id: string): boolean {
  return /^[A-Za-z0-9][\w.~-]{0,127}$/.test(id)
}

type Saved = StoreOutcome & { readonly uri: string }
type Put = (mount: WritableMount, value: unknown, context: Context) => Promise<Saved>
/** @throws ResourceError `not-found` for an id that the principal may not see */
type CheckVisible = (mount: WritableMount, value: unknown, principal: Principal) => void

function resultUri({ address }: WritableMount, id: string): string {
  return formatUri(parseAddress(address), `results/${id}`)
}

const outputSchema: JsonObject = objectSchema(['uri', 'id', 'status', 'created'], {
  uri: { type: 'string', description: 'The URI of the saved result.' },
  id: { type: 'string' },
  status: { type: 'string', enum: ['created', 'replaced', 'unchanged'] },
  created: { type: 'string' },
  expires: { type: 'string' },
})

function saveTool(mounts: readonly WritableMount[], putAnalysis: Put): Tool {
  const [first] = mounts
  const addresses = mounts.map(({ address }) => parseAddress(address).text)
  const schema = first?.provider.schema ?? {}
  const { properties, required } = schema as { readonly properties?: JsonObject; readonly required?: readonly string[] }
  const to = { type: 'string', enum: addresses, description: 'The address of the mount that saves the analysis.' }
  const isOne = mounts.length === 1
  const inputSchema = isOne
    ? schema
    : { ...schema, properties: { to, ...properties }, required: ['to', ...(required ?? [])] }
  return {
    name: 'save_analysis',
    title: 'Save an analysis',
    description:
      'Saves the result of a wall-bounce analysis: what several models answered to one question, and the consensus. It can then be ' +
      'found by its prompt, its tags and its id. Saving the same analysis again changes at most its tags and times.',
    inputSchema,
    outputSchema,
    annotations: { readOnly: false, destructive: true, idempotent: true, openWorld: false },
    call: async (args, context) => {
      const { to: address, ...analysis } = fitArguments(args, inputSchema)
      const mount = isOne && address === undefined ? first : mounts[addresses.indexOf(String(address))]
      if (mount === undefined || (isOne && address !== undefined))
        throw invalid(
          isOne
            ? '"to" is not allowed, because only one mount saves results. Leave it out.'
            : `"to" must be one of ${addresses.map((text) => JSON.stringify(text)).join(', ')}.`,
          'argument',
          { field: 'to' },
        )
      const saved = await putAnalysis(mount, analysis, context)
      return {
        text: `${sentences[saved.status]} ${saved.uri}`,
        structured: { ...saved },
        resources: [{ uri: saved.uri, name: saved.id }],
      }
    },
  }
}

const sentences: Readonly<Record<StoreOutcome['status'], string>> = {
  created: 'Saved:',
  replaced: 'Replaced the earlier result:',
  unchanged: 'Already saved, nothing changed:',
}

/**
 * Saves one analysis, or an array of them. If one in an array is malformed, or has an id that the principal may not
 * see, none is saved.
 */
function postingTo(mount: WritableMount, putAnalysis: Put, checkVisible: CheckVisible): PostEndpoint {
  return {
    post: async (value, context) => {
      if (!Array.isArray(value)) {
        const saved = await putAnalysis(mount, value, context)
        return { answer: { ...saved }, created: saved.status === 'created', location: saved.uri }
      }
      if (value.length === 0 || value.length > mostAtOnce)
        throw invalid(`The request has ${value.length} analyses. Send 1 to ${mostAtOnce} at once.`, 'argument', {
          field: '',
        })
      for (const [index, one] of value.entries()) {
        checkVisible(mount, one, context.principal)
        checkAt(mount, one, index)
      }
      const results: Saved[] = []
      for (const one of value) results.push(await putAnalysis(mount, one, context))
      return { answer: { results }, created: results.some(({ status }) => status === 'created') }
    },
  }
}

/** @throws ResourceError `invalid`, whose message contains the index */
function checkAt({ provider }: WritableMount, value: unknown, index: number): void {
  try {
    provider.check(value)
  } catch (error) {
    if (!isResourceError(error, 'invalid')) throw error
    const { reason = 'argument', ...detail } = error.detail
    throw invalid(`[${index}] ${error.message}`, reason, { ...detail, index })
  }
}
