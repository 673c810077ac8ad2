import { randomBytes } from 'node:crypto'
import { ProtocolError, specTypeSchemas } from '@modelcontextprotocol/client'
import { isResourceError } from '../core/errors.ts'
import { type CheckResult, failedResult, okResult, type ReportCheck, warningResult } from '../core/kit/diagnosis.ts'
import { nonEmptyText, objectOf } from '../core/kit/object.ts'
import { compileTemplate } from '../core/template.ts'
import type { Connection, ConnectionSettings } from './connection.ts'
import { printableText } from './errors.ts'
import { isUnknownMethodError } from './failures.ts'
import { openConnection } from './open.ts'
import type { ServerTarget } from './target.ts'
import { cursorOf, type WireObject } from './wire.ts'

/** Maximum number of pages of a list that are checked. */
const maxPages = 50
const maxReads = 3
/** Maximum size of a resource that is read, in bytes. Resources that declare a larger size are skipped. */
const maxReadBytes = 1024 * 1024
/** Maximum number of schema violations that are reported for one answer. */
const maxFaults = 3

/**
 * Checks a server as a strict client would: whether it answers, which capabilities it declares, whether its lists and a few resources match
 * the schemas of the specification, whether its pages end, whether it accepts a subscription, and how it answers for a URI that does not
 * exist. Nothing is changed.
 */
export async function examineServer(
  target: ServerTarget,
  limits: ConnectionSettings,
  tell: ReportCheck,
): Promise<void> {
  let connection: Connection
  try {
    connection = await openConnection(target, limits)
  } catch (error) {
    limits.signal.throwIfAborted()
    if (!isResourceError(error)) throw error
    const [sentence = '', ...fixes] = error.message.split(/(?<=\.) (?=[A-Z])/)
    return tell('connect', failedResult(sentence, fixes.join(' ') || 'Check that it is an MCP server.'))
  }
  try {
    tell('connect', okResult(describeServer(connection)))
    tell('capabilities', capabilities(connection))
    if (!connection.hasResources) return
    const { resources, found } = await list(connection)
    tell('list', found)
    tell('templates', await templates(connection))
    const reading = await checkResourceReads(connection, resources)
    if (reading !== undefined) tell('read', reading)
    const subscribing = await subscribe(connection, resources)
    if (subscribing !== undefined) tell('subscribe', subscribing)
    tell('unknown', await unknown(connection))
  } finally {
    await connection.close()
  }
}

function describeServer({ about: { name, version }, revision }: Connection): string {
  const who =
    name === undefined ? 'a server without a name' : `${printableText(name)} ${printableText(version ?? '')}`.trim()
  return `${who}, which speaks MCP ${printableText(revision)}`
}

function capabilities({ about, hasResources, tells }: Connection): CheckResult {
  const capabilityNames = about.capabilities.map(printableText).join(', ') || 'none'
  if (!hasResources)
    return warningResult(
      `The server has no resources, only: ${capabilityNames}.`,
      'Use its tools, or declare the capability "resources" in the server.',
    )
  const notifications = [
    tells.updated ? ['changes of resources'] : [],
    tells.listed ? ['changes of the list'] : [],
  ].flat()
  return okResult(`${capabilityNames}; it reports ${notifications.join(' and ') || 'no changes'}`)
}

async function list(
  connection: Connection,
): Promise<{ readonly resources: readonly WireObject[]; readonly found: CheckResult }> {
  const { items, pages, fault, isEnd } = await readListing(
    connection,
    'resources/list',
    'ListResourcesResult',
    'resources',
  )
  const uris = items.flatMap((item) => nonEmptyText(item.uri) ?? [])
  const twice = uris.find((uri, i) => uris.indexOf(uri) !== i && i < 5000)
  const amount = `${quantityOf(items.length, 'resource')} on ${quantityOf(pages, 'page')}${isEnd ? '' : ', and more'}`
  const checkResult =
    twice === undefined
      ? okResult(amount)
      : failedResult(`${printableText(twice)} is listed twice.`, 'List each URI once.')
  return { resources: items, found: fault ?? checkResult }
}

const quantityOf = (number: number, word: string) => `${number} ${word}${number === 1 ? '' : 's'}`

async function templates(connection: Connection): Promise<CheckResult> {
  const listing = await readListing(
    connection,
    'resources/templates/list',
    'ListResourceTemplatesResult',
    'resourceTemplates',
  )
  if (listing.fault !== undefined) return listing.fault
  for (const { uriTemplate } of listing.items)
    try {
      compileTemplate(nonEmptyText(uriTemplate) ?? '')
    } catch (error) {
      if (!isResourceError(error)) throw error
      const templateText = printableText(String(uriTemplate))
      return failedResult(
        `The template ${templateText} is malformed. ${error.message}`,
        'Write it as RFC 6570 defines it.',
      )
    }
  return okResult(quantityOf(listing.items.length, 'template'))
}

async function readListing(
  connection: Connection,
  method: string,
  schema: 'ListResourcesResult' | 'ListResourceTemplatesResult',
  key: string,
) {
  const items: WireObject[] = []
  const cursors = new Set<string>()
  let cursor: string | undefined
  for (let pages = 1; ; pages++) {
    const result = (isEnd: boolean, fault?: CheckResult) => ({ items, pages, isEnd, fault })
    let answer: WireObject
    try {
      answer = await connection.request(method, cursor === undefined ? {} : { cursor }, undefined)
    } catch (error) {
      if (!isResourceError(error)) throw error
      const isNone = pages === 1 && key === 'resourceTemplates' && isUnknownMethodError(error)
      if (isNone) return result(true)
      return result(false, failedResult(`${method} failed. ${error.message}`, 'Look at the log of the server.'))
    }
    const fault = await findSchemaViolation(schema, answer)
    if (fault !== undefined)
      return result(false, failedResult(`The answer to ${method} is malformed: ${fault}.`, conform))
    const page = answer[key]
    for (const item of Array.isArray(page) ? page : []) items.push(objectOf(item))
    cursor = cursorOf(answer)
    if (cursor === undefined) return result(true)
    if (cursors.has(cursor))
      return result(
        false,
        failedResult(`${method} gave the same cursor twice.`, 'Leave nextCursor out of the last page.'),
      )
    cursors.add(cursor)
    if (pages === maxPages) return result(false)
  }
}

const conform = 'Correct the answer of the server: https://modelcontextprotocol.io/specification has the schema.'

async function checkResourceReads(
  connection: Connection,
  resources: readonly WireObject[],
): Promise<CheckResult | undefined> {
  const small = resources.filter(({ size }) => typeof size !== 'number' || size <= maxReadBytes).slice(0, maxReads)
  if (small.length === 0) return undefined
  for (const { uri } of small) {
    const uriText = printableText(String(uri))
    try {
      const answer = await connection.request('resources/read', { uri }, undefined)
      const fault = await findSchemaViolation('ReadResourceResult', answer)
      if (fault !== undefined) return failedResult(`The answer to reading ${uriText} is malformed: ${fault}.`, conform)
      if (Array.isArray(answer.contents) && answer.contents.length === 0)
        return failedResult(
          `Reading ${uriText} returns no content.`,
          'Return a content, or the error for a missing resource.',
        )
    } catch (error) {
      if (!isResourceError(error)) throw error
      return failedResult(
        `${uriText} is listed, but cannot be read. ${error.message}`,
        'Look at the log of the server.',
      )
    }
  }
  return okResult(`${small.length} listed ${small.length === 1 ? 'resource' : 'resources'} read`)
}

/** Checks that a server accepts a subscription. Undefined if it declares no subscriptions, or lists no resource. */
async function subscribe(connection: Connection, resources: readonly WireObject[]): Promise<CheckResult | undefined> {
  const uri = nonEmptyText(resources[0]?.uri)
  if (!connection.tells.updated || uri === undefined) return undefined
  try {
    if (connection.listen === undefined) {
      await connection.request('resources/subscribe', { uri }, undefined)
      await connection.request('resources/unsubscribe', { uri }, undefined)
    } else {
      const { honoredFilter, close } = await connection.listen({ resourceSubscriptions: [uri] })
      await close()
      if ((honoredFilter.resourceSubscriptions ?? []).length === 0)
        return warningResult(`Changes of ${printableText(uri)} are not reported.`, 'Read it again to notice changes.')
    }
    return okResult('a resource can be subscribed to')
  } catch (error) {
    if (!isResourceError(error)) throw error
    const finding = `The server declares subscriptions, but one failed. ${error.message}`
    return failedResult(finding, 'Accept subscriptions, or do not declare "subscribe".')
  }
}

/** Checks the answer for a missing URI. The specification requires the error -32602 (before 2026-07-28: -32002), never an empty answer. */
async function unknown(connection: Connection): Promise<CheckResult> {
  const uri = `hikidashi-examination://${randomBytes(8).toString('hex')}/nothing`
  try {
    const answer = await connection.request('resources/read', { uri }, undefined)
    const empty = Array.isArray(answer.contents) && answer.contents.length === 0
    return failedResult(
      `Reading a URI without a resource returns ${empty ? 'no content' : 'a content'} instead of an error.`,
      'Return the error -32602 with data { "uri" } (before 2026-07-28: -32002).',
    )
  } catch (error) {
    if (!isResourceError(error)) throw error
    const { cause } = error
    if (!(cause instanceof ProtocolError)) return failedResult(error.message, 'Look at the log of the server.')
    const code = Number(cause.code)
    const names = objectOf(cause.data).uri === uri
    if (code === -32_602 || code === -32_002) {
      const finding = `A URI without a resource: error ${code}${names ? ', which names the URI' : ''}`
      return names || code === -32_002
        ? okResult(finding)
        : warningResult(
            `${finding}, and does not name it.`,
            'Put { "uri" } into the data of the error, so that it means "not found".',
          )
    }
    return failedResult(
      `Reading a URI without a resource returns the error ${code}: ${printableText(cause.message)}.`,
      'Return the error -32602 with data { "uri" } (before 2026-07-28: -32002).',
    )
  }
}

/** Returns how an answer violates the schema of the specification; undefined when it does not. */
async function findSchemaViolation(
  schema: 'ListResourcesResult' | 'ListResourceTemplatesResult' | 'ReadResourceResult',
  answer: WireObject,
): Promise<string | undefined> {
  const { issues } = await specTypeSchemas[schema]['~standard'].validate(answer)
  if (issues === undefined) return undefined
  const faults = issues.slice(0, maxFaults).map(({ path = [], message }) => {
    const at = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.')
    return `${at}: ${printableText(message)}`
  })
  return [...faults, ...(issues.length > maxFaults ? [`${issues.length - maxFaults} more`] : [])].join('; ')
}
