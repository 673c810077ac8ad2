import { createHash } from 'node:crypto'

/** A file, folder or shortcut in the stand-in for Drive. */
export interface KeptFile {
  readonly id: string
  name: string
  mimeType: string
  parents?: string[]
  driveId?: string
  trashed: boolean
  version: number
  modifiedTime: string
  /** The content of a stored file. */
  content?: Buffer
  /** The exports of a Google document, by type. */
  exports?: Readonly<Record<string, string | Buffer>>
  shortcutDetails?: { readonly targetId: string; readonly targetMimeType: string }
  permissions: KeptPermission[]
  canShare: boolean
  canDownload: boolean
  abusive: boolean
  /** Whether the account can see the file. */
  visible: boolean
  sharedWithMeTime?: string
}

export interface KeptPermission {
  readonly id: string
  readonly type: 'user' | 'group' | 'domain' | 'anyone'
  readonly role: string
  readonly emailAddress?: string
  readonly domain?: string
  readonly allowFileDiscovery?: boolean
  readonly expirationTime?: string
}

export interface NewFile {
  readonly id: string
  readonly name?: string
  readonly mimeType?: string
  readonly parent?: string | null
  readonly content?: string | Buffer
  readonly exports?: KeptFile['exports']
  readonly target?: string
  readonly driveId?: string
  readonly permissions?: readonly KeptPermission[]
  readonly canShare?: boolean
  readonly canDownload?: boolean
  readonly abusive?: boolean
  readonly shared?: boolean
  readonly modified?: number
}

export const types = {
  folder: 'application/vnd.google-apps.folder',
  shortcut: 'application/vnd.google-apps.shortcut',
  document: 'application/vnd.google-apps.document',
  spreadsheet: 'application/vnd.google-apps.spreadsheet',
  presentation: 'application/vnd.google-apps.presentation',
  drawing: 'application/vnd.google-apps.drawing',
  form: 'application/vnd.google-apps.form',
} as const

/** The address of the account. */
export const account = 'reader@example.com'
export const rootId = '0AROOTofMyDrive'

export type DriveTable = ReturnType<typeof createDriveTable>

interface Logged {
  readonly fileId?: string
  readonly driveId?: string
}

export function permission(emailAddress: string, role = 'reader'): KeptPermission {
  return { id: `p-${emailAddress}`, type: 'user', role, emailAddress }
}

/** The files of an account of Drive, with logs of changes: one of the user, one for each shared drive. */
export function createDriveTable() {
  const files = new Map<string, KeptFile>()
  const drives = new Map<string, string>()
  const logs = new Map<string, Logged[]>([['', []]])
  let tick = Date.parse('2026-03-01T10:00:00Z')

  const logOf = (driveId = ''): Logged[] => {
    const log = logs.get(driveId) ?? []
    logs.set(driveId, log)
    return log
  }
  const touch = (file: KeptFile): void => {
    file.version++
    tick += 1000
    file.modifiedTime = new Date(tick).toISOString()
    logOf(file.driveId).push({ fileId: file.id })
  }
  const require = (id: string): KeptFile => {
    const file = files.get(id)
    if (file === undefined) throw new Error(`There is no ${id} in the table.`)
    return file
  }

  const add = (given: NewFile): KeptFile => {
    const { id, name = id, parent = rootId, content, exports, target, driveId, modified } = given
    const stored = content === undefined ? undefined : Buffer.from(content)
    const mimeType = given.mimeType ?? (target !== undefined ? types.shortcut : stored ? 'text/plain' : types.folder)
    const drive = driveId ?? (parent === null ? undefined : files.get(parent)?.driveId)
    const file: KeptFile = {
      id,
      name,
      mimeType,
      trashed: false,
      version: 0,
      modifiedTime: '',
      permissions: [...(given.permissions ?? [permission(account, 'owner')])],
      canShare: given.canShare ?? true,
      canDownload: given.canDownload ?? true,
      abusive: given.abusive ?? false,
      visible: true,
      ...(parent === null ? {} : { parents: [parent] }),
      ...(stored === undefined ? {} : { content: stored }),
      ...(exports === undefined ? {} : { exports }),
      ...(drive === undefined ? {} : { driveId: drive }),
      ...(given.shared === true ? { sharedWithMeTime: '2026-01-01T00:00:00.000Z' } : {}),
      ...(target === undefined
        ? {}
        : { shortcutDetails: { targetId: target, targetMimeType: files.get(target)?.mimeType ?? types.document } }),
    }
    files.set(id, file)
    touch(file)
    if (modified !== undefined) file.modifiedTime = new Date(modified).toISOString()
    return file
  }
  add({ id: rootId, name: 'My Drive', parent: null, mimeType: types.folder })

  return {
    files,
    drives,
    logs,
    add,
    touch: (id: string) => touch(require(id)),
    change: (id: string, change: Partial<KeptFile>) => {
      const file = require(id)
      Object.assign(file, change)
      touch(file)
    },
    write: (id: string, content: string | Buffer) => {
      const file = require(id)
      file.content = Buffer.from(content)
      touch(file)
    },
    move: (id: string, parent: string | undefined) => {
      const file = require(id)
      if (parent === undefined) delete file.parents
      else file.parents = [parent]
      touch(file)
    },
    /** Moves a file to the trash. As in Drive, everything in a trashed folder becomes trashed too. */
    trash: (id: string) => {
      const file = require(id)
      file.trashed = true
      touch(file)
      for (const child of files.values()) if (isBelow(child, id)) child.trashed = true
    },
    remove: (id: string) => {
      const { driveId } = require(id)
      files.delete(id)
      logOf(driveId).push({ fileId: id })
    },
    addDrive: (id: string, name: string) => {
      drives.set(id, name)
      add({ id, name, parent: null, driveId: id, mimeType: types.folder })
      logOf('').push({ driveId: id })
    },
    logOf,
  }

  function isBelow(file: KeptFile, folder: string): boolean {
    for (let at: string | undefined = file.parents?.[0], depth = 0; at !== undefined && depth < 50; depth++) {
      if (at === folder) return true
      at = files.get(at)?.parents?.[0]
    }
    return false
  }
}

/** Returns the fields of a file that requests use. */
export function describeFile(file: KeptFile): Readonly<Record<string, unknown>> {
  const { content, permissions, canShare, canDownload, driveId, exports: _, abusive: __, visible: ___, ...facts } = file
  const known = permissions.map((one) => ({ kind: 'drive#permission', deleted: false, ...one }))
  return {
    kind: 'drive#file',
    ...facts,
    version: String(file.version),
    webViewLink: `https://docs.google.com/file/d/${file.id}/view`,
    createdTime: '2026-01-01T00:00:00.000Z',
    capabilities: { canDownload, canShare },
    permissionIds: permissions.map(({ id }) => id),
    lastModifyingUser: { displayName: 'Hanako', emailAddress: 'hanako@example.com' },
    ...(driveId === undefined ? { owners: [{ displayName: 'Reader', emailAddress: account }] } : { driveId }),
    // Permissions are shown only to users who may share the file, and never in listings of shared drives.
    ...(canShare && driveId === undefined ? { permissions: known } : {}),
    ...(content === undefined
      ? {}
      : {
          size: String(content.length),
          md5Checksum: createHash('md5').update(content).digest('hex'),
          headRevisionId: `r${file.version}`,
        }),
  }
}
