import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { errorCodeOf } from '../../core/errors.ts'
import { isObject, jsonIn } from '../../core/kit/object.ts'
import type { View } from '../../core/view.ts'
import type { AuditRecord } from '../../server/telemetry/audit.ts'
import { commandFailure } from '../terminal/exit.ts'

export interface AuditQuery {
  /** The name or id of a token, the id of a principal or one of its parts, or an address. */
  readonly caller?: string
  /** Milliseconds since 1970. */
  readonly since?: number
  readonly uri?: string
  readonly verb?: string
  readonly outcome?: string
  /** Maximum number of records: the newest ones. */
  readonly limit: number
}

export interface FoundRecords {
  readonly records: readonly Partial<AuditRecord>[]
  readonly more: number
  readonly damaged: number
}

/** Searches an audit log and its rotated files. @throws CommandError if a log cannot be read */
export async function findRecords(file: string, query: AuditQuery): Promise<FoundRecords> {
  const records: Partial<AuditRecord>[] = []
  let more = 0
  let damaged = 0
  for (const part of await filesOf(file)) {
    const lines = createInterface({ input: createReadStream(part, 'utf8'), crlfDelay: Number.POSITIVE_INFINITY })
    try {
      for await (const line of lines) {
        const value = line === '' ? undefined : jsonIn(line)
        if (line !== '' && !(isObject(value) && typeof value.time === 'string' && typeof value.verb === 'string'))
          damaged++
        else if (value !== undefined && isQueryMatch(value as Partial<AuditRecord>, query))
          records.push(value as object)
        if (records.length <= query.limit) continue
        records.shift()
        more++
      }
    } catch (error) {
      // The server may have rotated the log again meanwhile.
      if (errorCodeOf(error) !== 'ENOENT' || part === file)
        throw commandFailure(`The audit log ${part} cannot be read (${errorCodeOf(error) ?? 'unknown'}).`)
    }
  }
  return { records, more, damaged }
}

async function filesOf(file: string): Promise<readonly string[]> {
  const folder = dirname(file)
  const names = await readdir(folder).catch(() => [])
  const numbers = names.flatMap((name) => {
    const number = name.startsWith(`${basename(file)}.`) ? name.slice(basename(file).length + 1) : ''
    return /^[1-9]\d*$/.test(number) ? [Number(number)] : []
  })
  return [...numbers.sort((a, b) => b - a).map((number) => join(folder, `${basename(file)}.${number}`)), file]
}

function isQueryMatch(record: Partial<AuditRecord>, { caller, since, uri, verb, outcome }: AuditQuery): boolean {
  if (caller !== undefined && !callerNames(record).includes(caller)) return false
  // Compared as a time: another program may have written the record with another offset.
  if (since !== undefined && !(Date.parse(record.time ?? '') >= since)) return false
  if (uri !== undefined && record.uri?.startsWith(uri) !== true) return false
  return (verb === undefined || record.verb === verb) && (outcome === undefined || record.outcome === outcome)
}

/** Returns the most readable name first: the label, then parts of the id, the whole id, and the address. */
export function callerNames({ label, principal, address }: Partial<AuditRecord>): readonly string[] {
  const parts = principal?.startsWith('[') ? jsonIn(principal) : undefined
  const own = Array.isArray(parts) ? parts.filter((part) => typeof part === 'string').slice(1) : []
  return [label, ...own, principal, address].filter((name) => name !== undefined)
}

/** A content as a caller has read it, or why it cannot be read again. */
export type RecordedContent =
  | { readonly uri: string; readonly text: string }
  | { readonly uri: string; readonly bytes: Uint8Array }
  | { readonly reason: string }

/** Maximum number of leading segments of a path that may name a ref of git. */
const maxRefSegments = 12

/**
 * Reads the content of a record as it was: the resource itself if it still has the version, else the file in the commit
 * from which it was read. The current access rules and redaction apply.
 * @param mounts The addresses of the mounts.
 */
export async function readRecordedContent(
  { uri, version, commit, outcome, verb }: Partial<AuditRecord>,
  view: View,
  mounts: readonly string[],
): Promise<RecordedContent> {
  if (verb !== 'read' || outcome !== 'ok' || uri === undefined) return { reason: 'nothing was read' }
  if (version === undefined) return { reason: 'the record has no version' }
  for (const candidate of [uri, ...inCommit(uri, commit, mounts)]) {
    const { contents } = await view.read(candidate).catch(() => ({ contents: [] }))
    const [content] = contents
    if (content === undefined || content.version?.slice(0, version.length) !== version) continue
    if ('text' in content) return { uri: candidate, text: content.text }
    if ('bytes' in content) return { uri: candidate, bytes: content.bytes }
    return { reason: 'it is too large' }
  }
  const isGit = commit !== undefined
  return {
    reason: isGit
      ? `commit ${commit} does not have it, or it cannot be read now`
      : 'it has changed or cannot be read now, and the record names no commit',
  }
}

function inCommit(uri: string, commit: string | undefined, mounts: readonly string[]): readonly string[] {
  const mount = mounts.filter((address) => uri.startsWith(`${address}/`)).sort((a, b) => b.length - a.length)[0]
  if (commit === undefined || mount === undefined) return []
  const segments = uri.slice(mount.length + 1).split('/')
  const lengths = Array.from({ length: Math.min(maxRefSegments, segments.length - 1) }, (_, at) => at + 1)
  return lengths.map((length) => [mount, commit, ...segments.slice(length)].join('/'))
}
