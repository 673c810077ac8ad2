import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createDriveOAuth, type DriveOAuth } from './drive-oauth.ts'
import { parseQuery, project } from './drive-query.ts'
import { createDriveTable, type DriveTable, describeFile, type KeptFile, rootId } from './drive-table.ts'
import { listening } from './listening.ts'
import { rangeOf } from './s3-stand-in.ts'

export interface SeenCall {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
}

export interface DriveStandIn {
  readonly url: string
  readonly port: number
  readonly table: DriveTable
  readonly oauth: DriveOAuth
  readonly calls: SeenCall[]
  /** Answers a call instead of the stand-in if it returns true. */
  intercept: ((call: SeenCall, response: ServerResponse) => boolean) | undefined
  /** Maximum number of files on a page. */
  pageLimit: number
  /** Invalidates all page tokens of the feeds of changes: they are refused with this status. */
  forgetChanges(status: 400 | 404 | 410): void
  close(): Promise<void>
}

/** Sends an error in the format of Google. */
export function sendDriveError(
  response: ServerResponse,
  code: number,
  reason: string,
  message = `It is ${reason}.`,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(code, { 'content-type': 'application/json; charset=UTF-8', ...headers })
  response.end(JSON.stringify({ error: { code, message, errors: [{ message, domain: 'global', reason }] } }))
}

/** The error that a refusal throws. */
const refusal = (code: number, reason: string, message = `It is ${reason}.`) =>
  Object.assign(new Error(message), { code, reason })

const isRefusal = (error: unknown): error is ReturnType<typeof refusal> =>
  error instanceof Error && 'reason' in error && 'code' in error

const exportLimit = 10 * 1024 * 1024

/**
 * A stand-in for the Drive API (v3) of one account, and for the authorization servers: queries, partial responses, pages, shared
 * drives, media with ranges, limited exports, feeds of changes, permissions, and errors in the words of Google.
 */
export async function startDrive(): Promise<DriveStandIn> {
  const table = createDriveTable()
  const oauth = createDriveOAuth()
  const server = createServer(async (request, response): Promise<unknown> => {
    const [path = '/', search = ''] = (request.url ?? '/').split('?')
    const call = { method: request.method ?? 'GET', path, query: new URLSearchParams(search), headers: request.headers }
    let body = ''
    try {
      for await (const piece of request) body += String(piece)
    } catch {
      // The client has disconnected.
      return undefined
    }
    standIn.calls.push(call)
    if (standIn.intercept?.(call, response)) return undefined
    if (path === '/o/oauth2/v2/auth') return oauth.page(call.query, response)
    if (path === '/token') return oauth.token(body, response)
    if (!oauth.isGood(request.headers.authorization))
      return sendDriveError(response, 401, 'authError', 'Invalid Credentials', { 'www-authenticate': 'Bearer' })
    try {
      return answer(standIn, forgotten, call, response)
    } catch (error) {
      if (isRefusal(error)) return sendDriveError(response, error.code, error.reason, error.message)
      return sendDriveError(response, 400, 'invalid', 'Invalid Value')
    }
  })
  const forgotten = { before: 0, status: 410 }
  const standIn: DriveStandIn = {
    ...(await listening(server)),
    table,
    oauth,
    calls: [],
    intercept: undefined,
    pageLimit: 1000,
    forgetChanges: (status) => {
      forgotten.before = Math.max(...[...table.logs.values()].map((log) => log.length)) + 1
      forgotten.status = status
      // New changes come after the forgotten tokens.
      for (const log of table.logs.values()) while (log.length < forgotten.before) log.push({})
    },
  }
  return standIn
}

interface Forgotten {
  readonly before: number
  readonly status: number
}

function answer(standIn: DriveStandIn, forgotten: Forgotten, call: SeenCall, response: ServerResponse): unknown {
  const { path, query, method } = call
  const [, api, version, kind, id, part] = path.split('/').map(decodeURIComponent)
  if (method !== 'GET' || api !== 'drive' || version !== 'v3') throw refusal(404, 'notFound')
  const send = (value: unknown) => {
    const fields = query.get('fields')
    response.writeHead(200, { 'content-type': 'application/json; charset=UTF-8' })
    response.end(JSON.stringify(fields === null ? value : project(value, fields)))
  }
  if (kind === 'files' && id === undefined) return send(listFiles(standIn, query))
  if (kind === 'changes')
    return send(id === 'startPageToken' ? startToken(standIn, query) : changes(standIn, forgotten, query))
  if (kind === 'drives') return send(id === undefined ? listDrives(standIn, query) : oneDrive(standIn, id))
  if (kind !== 'files' || id === undefined) throw refusal(404, 'notFound')
  const file = fileAt(standIn, id, query)
  if (part === 'permissions') {
    if (!file.canShare) throw refusal(403, 'insufficientFilePermissions')
    return send({ kind: 'drive#permissionList', permissions: file.permissions })
  }
  if (part === 'export') return sendBytes(exportOf(file, query), call, response, query.get('mimeType') ?? '')
  if (query.get('alt') === 'media') return sendBytes(mediaOf(file), call, response, file.mimeType)
  return send(describeFile(file))
}

function fileAt({ table }: DriveStandIn, id: string, query: URLSearchParams): KeptFile {
  const file = table.files.get(id === 'root' ? rootId : id)
  const isHidden = file?.driveId !== undefined && query.get('supportsAllDrives') !== 'true' && !query.has('mimeType')
  if (file === undefined || !file.visible || isHidden) throw refusal(404, 'notFound', `File not found: ${id}.`)
  return file
}

function mediaOf(file: KeptFile): Buffer {
  if (file.abusive)
    throw refusal(
      403,
      'cannotDownloadAbusiveFile',
      'This file has been identified as malware or spam and cannot be downloaded.',
    )
  if (!file.canDownload) throw refusal(403, 'cannotDownloadFile')
  if (file.content === undefined)
    throw refusal(
      403,
      'fileNotDownloadable',
      'Only files with binary content can be downloaded. Use Export with Docs Editors files.',
    )
  return file.content
}

function exportOf(file: KeptFile, query: URLSearchParams): Buffer {
  if (file.exports === undefined) throw refusal(403, 'fileNotExportable', 'Export only supports Docs Editors files.')
  const found = file.exports[query.get('mimeType') ?? '']
  if (found === undefined) throw refusal(400, 'badRequest', 'The requested conversion is not supported.')
  const bytes = Buffer.from(found)
  if (bytes.length > exportLimit)
    throw refusal(403, 'exportSizeLimitExceeded', 'This file is too large to be exported.')
  return bytes
}

function sendBytes(bytes: Buffer, { headers }: SeenCall, response: ServerResponse, type: string): void {
  const range = rangeOf(headers.range, bytes.length)
  if (range === 'unsatisfiable') throw refusal(416, 'requestedRangeNotSatisfiable', 'Request range not satisfiable')
  const part = range === undefined ? bytes : bytes.subarray(range.start, range.end)
  response.writeHead(range === undefined ? 200 : 206, {
    'content-type': type,
    'content-length': part.length,
    ...(range === undefined ? {} : { 'content-range': `bytes ${range.start}-${range.end - 1}/${bytes.length}` }),
  })
  response.end(part)
}

/** Returns a page of a list, with a token for the next one. */
function pageOf<T>(standIn: DriveStandIn, all: readonly T[], query: URLSearchParams, most: number) {
  const size = Number(query.get('pageSize') ?? 100)
  if (!(size >= 1 && size <= most))
    throw refusal(400, 'invalid', `Invalid value '${size}'. Values must be within the range: [1, ${most}]`)
  const [, from] = /^~(\d+)$/.exec(query.get('pageToken') ?? '~0') ?? []
  if (from === undefined) throw refusal(400, 'invalid', 'Invalid Value')
  const end = Number(from) + Math.min(size, standIn.pageLimit)
  return { items: all.slice(Number(from), end), ...(end < all.length ? { nextPageToken: `~${end}` } : {}) }
}

function inCorpus(query: URLSearchParams): (file: KeptFile) => boolean {
  const driveId = query.get('driveId')
  if (query.get('corpora') !== 'drive') {
    if (driveId !== null) throw refusal(403, 'teamDriveIdNotApplicable')
    return (file) => file.driveId === undefined || file.sharedWithMeTime !== undefined
  }
  const isWhole = query.get('supportsAllDrives') === 'true' && query.get('includeItemsFromAllDrives') === 'true'
  if (driveId === null || !isWhole) throw refusal(403, 'teamDrivesParameterRequired')
  return (file) => file.driveId === driveId
}

function listFiles(standIn: DriveStandIn, query: URLSearchParams) {
  const isWanted = parseQuery(query.get('q') ?? '')
  const isInside = inCorpus(query)
  const found = [...standIn.table.files.values()].filter((file) => file.visible && isInside(file) && isWanted(file))
  const { items, ...rest } = pageOf(standIn, found, query, 1000)
  return { kind: 'drive#fileList', incompleteSearch: false, files: items.map(describeFile), ...rest }
}

function startToken({ table }: DriveStandIn, query: URLSearchParams) {
  return { kind: 'drive#startPageToken', startPageToken: String(1 + table.logOf(query.get('driveId') ?? '').length) }
}

function changes({ table, pageLimit }: DriveStandIn, forgotten: Forgotten, query: URLSearchParams) {
  const driveId = query.get('driveId') ?? ''
  const log = table.logOf(driveId)
  const token = Number(query.get('pageToken') ?? Number.NaN)
  if (!(token >= 1 && token <= log.length + 1) || token - 1 < forgotten.before)
    throw refusal(forgotten.status, forgotten.status === 410 ? 'gone' : 'invalid', 'Invalid Value')
  if (driveId !== '' && !table.drives.has(driveId)) throw refusal(404, 'teamDriveNotFound')
  const end = Math.min(log.length, token - 1 + Math.min(Number(query.get('pageSize') ?? 100), pageLimit))
  const entries = new Map(log.slice(token - 1, end).map((entry) => [entry.fileId ?? entry.driveId, entry]))
  const told = [...entries.values()].flatMap((entry): readonly object[] => {
    if (entry.driveId !== undefined)
      return [{ kind: 'drive#change', changeType: 'drive', removed: false, driveId: entry.driveId }]
    const { fileId } = entry
    if (fileId === undefined) return []
    const file = table.files.get(fileId)
    const isGone = file === undefined || !file.visible
    return [
      {
        kind: 'drive#change',
        changeType: 'file',
        fileId,
        removed: isGone,
        ...(isGone ? {} : { file: describeFile(file) }),
      },
    ]
  })
  return {
    kind: 'drive#changeList',
    changes: told,
    ...(end < log.length ? { nextPageToken: String(end + 1) } : { newStartPageToken: String(end + 1) }),
  }
}

function listDrives(standIn: DriveStandIn, query: URLSearchParams) {
  const all = [...standIn.table.drives].map(([id, name]) => ({ kind: 'drive#drive', id, name }))
  const { items, ...rest } = pageOf(standIn, all, query, 100)
  return { kind: 'drive#driveList', drives: items, ...rest }
}

function oneDrive({ table }: DriveStandIn, id: string) {
  const name = table.drives.get(id)
  if (name === undefined) throw refusal(404, 'notFound', `Shared drive not found: ${id}`)
  return { kind: 'drive#drive', id, name }
}
