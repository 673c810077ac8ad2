import type { drive_v3 } from '@googleapis/drive'
import { defined } from '../../core/kit/object.ts'
import { indexerPrincipal } from '../../core/mount-reader.ts'
import type { Principal } from '../../core/provider.ts'
import { mimeTypeByName } from '../files/options.ts'

export interface DriveFile {
  readonly id: string
  readonly name: string
  /** MIME type in Drive. */
  readonly type: string
  readonly parent: string | undefined
  /** Size in bytes; only for stored files. */
  readonly size?: number
  /** Time of the last modification, in milliseconds since 1970. */
  readonly modified?: number
  readonly version: string
  /** Web address at which people open the file. */
  readonly link?: string
  /** See {@link revisionOf}. */
  readonly revision?: string
  /** Id of a shortcut's target. */
  readonly target?: string
  /** Whether the credentials may download the content of the file. */
  readonly readable: boolean
  readonly trashed: boolean
  /** Whether the file was shared with the owner of the credentials, and so may be at the top level. */
  readonly top?: boolean
  /** Readers of the file; undefined: not requested, or unknown. */
  readonly readers?: Readers
}

/** Names of those who may read a file: see {@link createReaderLookup}. */
type Readers = ReadonlySet<string>

export type RawFile = drive_v3.Schema$File

const listed =
  'id,name,mimeType,parents,size,modifiedTime,sharedWithMeTime,version,md5Checksum,headRevisionId,webViewLink,trashed,' +
  'capabilities(canDownload),shortcutDetails(targetId)'
const shared = 'permissionIds,permissions(id,type,emailAddress,domain,allowFileDiscovery,deleted,expirationTime,view)'
const extraFields = 'driveId,createdTime,owners(displayName,emailAddress),lastModifyingUser(displayName,emailAddress)'

export function requestedFields(withReaders: boolean): { readonly listed: string; readonly told: string } {
  const fields = withReaders ? `${listed},${shared}` : listed
  return { listed: fields, told: `${fields},${extraFields}` }
}

export function isDriveId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,128}$/.test(text)
}

export const folderType = 'application/vnd.google-apps.folder'
export const shortcutType = 'application/vnd.google-apps.shortcut'

/** @returns undefined when the id is missing or malformed. */
export function parseDriveFile(raw: RawFile, readers?: Readers): DriveFile | undefined {
  const { id, name, mimeType, parents, size, modifiedTime, capabilities, shortcutDetails, trashed, sharedWithMeTime } =
    raw
  const { webViewLink } = raw
  if (typeof id !== 'string' || !isDriveId(id)) return undefined
  const modified = Date.parse(modifiedTime ?? '')
  const bytes = size === undefined || size === null ? Number.NaN : Number(size)
  const type = mimeType ?? ''
  const target = shortcutDetails?.targetId ?? undefined
  const revision = revisionOf(raw)
  const parent = parents?.[0]
  return {
    id,
    name: typeof name === 'string' ? name : '',
    type,
    parent: parent !== undefined && isDriveId(parent) ? parent : undefined,
    ...(isStored(type) && Number.isSafeInteger(bytes) && bytes >= 0 ? { size: bytes } : {}),
    ...(Number.isSafeInteger(modified) ? { modified } : {}),
    version: fileVersion(raw),
    ...(typeof webViewLink === 'string' ? { link: webViewLink } : {}),
    ...defined({ revision }),
    ...(target !== undefined && isDriveId(target) ? { target } : {}),
    readable: capabilities?.canDownload !== false,
    trashed: trashed === true,
    ...(typeof sharedWithMeTime === 'string' ? { top: true } : {}),
    ...defined({ readers }),
  }
}

/** Returns the revision of a file: for Google's own formats a number that grows with each change. */
export function revisionOf({ headRevisionId, version }: RawFile): string | undefined {
  return headRevisionId ?? version ?? undefined
}

/** Returns a hash or revision of the content of a stored file; for other files the version that Drive counts. */
function fileVersion({ md5Checksum, headRevisionId, version, modifiedTime }: RawFile): string {
  return md5Checksum ?? headRevisionId ?? `v${version ?? modifiedTime ?? ''}`
}

/** Whether Drive stores the bytes of files of a type: Google's own formats have none. */
function isStored(type: string): boolean {
  return !type.startsWith('application/vnd.google-apps.')
}

/** Returns the MIME type of a stored file: Drive's; if Drive does not know it, the one for the name; else `application/octet-stream`. */
export function storedTypeOf({ type, name }: Pick<DriveFile, 'type' | 'name'>): string {
  const label = type.toLowerCase()
  const isType = /^[a-z]{1,20}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,120}$/.test(label)
  return isType && label !== 'application/octet-stream' ? label : (mimeTypeByName(name) ?? 'application/octet-stream')
}

/** Returns a name of at most 1000 characters, without those that end a line or change the writing direction. Undefined: nothing is left. */
export function titleFromName(name: string): string | undefined {
  const title = name
    .replace(/[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, ' ')
    .toWellFormed()
    .trim()
    .slice(0, 1000)
    .toWellFormed()
  return title === '' ? undefined : title
}

/** How documents of one of Google's own types are exported. */
export interface ExportFormats {
  /** The MIME type to request from Drive, by the value of `?form=`; the first form is the default. For `csv`, a workbook is requested. */
  readonly forms: Readonly<Record<string, string>>
  /** MIME type of the default form's content. */
  readonly mimeType: string
}

const office = 'application/vnd.openxmlformats-officedocument.'
const pdf = 'application/pdf'
const sheet = `${office}spreadsheetml.sheet`

const kinds: ReadonlyMap<string, ExportFormats> = new Map(
  Object.entries({
    document: kind({
      markdown: 'text/markdown',
      text: 'text/plain',
      docx: `${office}wordprocessingml.document`,
      pdf,
    }),
    // Drive's CSV export has only the first sheet, so the workbook with all sheets is exported.
    spreadsheet: { forms: { csv: sheet, xlsx: sheet, pdf }, mimeType: 'text/markdown' },
    presentation: kind({ text: 'text/plain', pptx: `${office}presentationml.presentation`, pdf }),
    drawing: kind({ png: 'image/png', svg: 'image/svg+xml', pdf }),
  }).map(([name, value]) => [`application/vnd.google-apps.${name}`, value]),
)

function kind(forms: Readonly<Record<string, string>>): ExportFormats {
  return { forms, mimeType: Object.values(forms)[0] ?? '' }
}

export const spreadsheetType = 'application/vnd.google-apps.spreadsheet'

/** Returns the export formats of a type; undefined when it is not exported. */
export function exportFormatsOf(type: string): ExportFormats | undefined {
  return kinds.get(type)
}

export const exportFormatNames: readonly string[] = [
  ...new Set([...kinds.values()].flatMap(({ forms }) => Object.keys(forms))),
]

/** False for folders, Google Forms, sites and the like, and for files in the bin or without permission to download. */
export function isServed({ type, readable, trashed, size }: DriveFile): boolean {
  return readable && !trashed && (kinds.has(type) || (isStored(type) && size !== undefined))
}

export function listedMimeType(file: DriveFile): string {
  return exportFormatsOf(file.type)?.mimeType ?? storedTypeOf(file)
}

type Permission = NonNullable<RawFile['permissions']>[number]

export type ReadPermissions = (fileId: string) => Promise<readonly Permission[]>

/** Name of the readers of a file that is shared so that anyone can find it. */
const everybody = '*'
const nobody: Readers = new Set()

/** Maximum number of files whose permissions are looked up at a time: for a page of a listing, or for the changes of a poll. */
const maxLookUps = 200

/**
 * Creates a function that returns the readers of files: e-mail addresses of people and groups, names of domains, or everyone. It ignores
 * expired permissions, permissions for less than the content, and sharing by link.
 *
 * For items in shared drives Drive returns only ids of permissions; unknown ids are looked up, at most {@link maxLookUps} files at a time.
 */
export function createReaderLookup() {
  /** The reader for each id of a permission. A person or group has one id for all files. */
  const cache = new Map<string, string | undefined>()
  const sets = new Map<string, Readers>()

  const learn = (permissions: readonly Permission[]): readonly string[] =>
    permissions.flatMap((permission) => {
      const name = readerName(permission)
      const isSameEverywhere = (permission.expirationTime ?? permission.view ?? null) === null
      if (typeof permission.id === 'string' && isSameEverywhere) cache.set(permission.id, name)
      return name === undefined ? [] : [name]
    })

  const setOf = (names: readonly string[]): Readers => {
    const uniqueNames = [...new Set(names)].sort()
    const key = uniqueNames.join('\n')
    const set = sets.get(key) ?? new Set(uniqueNames)
    if (sets.size > 10_000) sets.clear()
    sets.set(key, set)
    return set
  }

  /** @param lookUp Throws when the credentials may not read the permissions: the file then has only the readers whose ids are known. */
  return async (files: readonly RawFile[], lookUp: ReadPermissions): Promise<readonly Readers[]> => {
    let remaining = maxLookUps
    const answers: Readers[] = []
    for (const { id, permissions, permissionIds } of files) {
      if (permissions !== undefined && permissions !== null) {
        answers.push(setOf(learn(permissions)))
        continue
      }
      const ids = permissionIds ?? []
      const isUnknown = typeof id === 'string' && ids.some((one) => !cache.has(one)) && remaining-- > 0
      const lookedUpPermissions = isUnknown ? await lookUp(id).catch(() => []) : []
      const own = new Set(lookedUpPermissions.map((permission) => permission.id))
      const others = ids.filter((one) => !own.has(one)).flatMap((one) => cache.get(one) ?? [])
      answers.push(ids.length === 0 ? nobody : setOf([...learn(lookedUpPermissions), ...others]))
    }
    return answers
  }
}

function readerName({ type, emailAddress, domain, allowFileDiscovery, deleted, expirationTime, view }: Permission) {
  const ends = Date.parse(expirationTime ?? '')
  if (deleted === true || (view !== undefined && view !== null) || ends <= Date.now()) return undefined
  if ((type === 'user' || type === 'group') && isName(emailAddress)) return emailAddress.toLowerCase()
  if (allowFileDiscovery !== true) return undefined
  if (type === 'domain' && isName(domain)) return domain.toLowerCase()
  return type === 'anyone' ? everybody : undefined
}

function isName(text: unknown): text is string {
  return typeof text === 'string' && text !== '' && text !== everybody && !text.includes('\n')
}

/**
 * Whether a principal may read a file: one of its roles is the e-mail address or domain of a reader, or everybody may read. The indexer may
 * read every file. False when the readers are unknown.
 */
export function mayRead(principal: Principal, readers: Readers | undefined): boolean {
  if (principal === indexerPrincipal) return true
  if (readers === undefined) return false
  const { roles } = principal
  return readers.has(everybody) || roles.some((role) => role !== everybody && readers.has(role.toLowerCase()))
}
