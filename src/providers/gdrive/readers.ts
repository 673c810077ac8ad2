import { indexer } from '../../core/mount-reader.ts'
import type { Principal } from '../../core/provider.ts'
import type { RawFile, Readers } from './model.ts'

/** A permission as Drive returns it. */
type Permission = NonNullable<RawFile['permissions']>[number]

/** Returns the permissions of a file, with the names behind their ids. */
export type LookUp = (fileId: string) => Promise<readonly Permission[]>

/** Everyone: files shared so that anyone can find them. */
const everybody = '*'
const nobody: Readers = new Set()

/** Maximum number of look-ups of permission ids for one listing. */
const maxLookUps = 200

/**
 * Finds out who may read files: e-mail addresses of people and groups, names of domains, or everyone. Sharing by link alone does not count,
 * because a person without the link could not find the file. Neither do expired permissions, or those for less than the content.
 *
 * For items in shared drives Drive returns only ids of permissions; unknown ids are looked up.
 */
export function createReaders() {
  /** Names by the id of a permission; ids are the same for every file. */
  const known = new Map<string, string | undefined>()
  /** One set for all files that are shared in the same way. */
  const sets = new Map<string, Readers>()

  const learn = (permissions: readonly Permission[]): readonly string[] =>
    permissions.flatMap((permission) => {
      const name = nameOf(permission)
      if (typeof permission.id === 'string') known.set(permission.id, name)
      return name === undefined ? [] : [name]
    })

  const setOf = (names: readonly string[]): Readers => {
    const sorted = [...new Set(names)].sort()
    const key = sorted.join('\n')
    const set = sets.get(key) ?? new Set(sorted)
    if (sets.size > 10_000) sets.clear()
    sets.set(key, set)
    return set
  }

  return {
    /** @param lookUp Throws when the credentials may not read the permissions: the file then has no readers. */
    of: async (files: readonly RawFile[], lookUp: LookUp): Promise<readonly Readers[]> => {
      let left = maxLookUps
      const answers: Readers[] = []
      for (const { id, permissions, permissionIds } of files) {
        if (permissions !== undefined && permissions !== null) {
          answers.push(setOf(learn(permissions)))
          continue
        }
        const ids = permissionIds ?? []
        if (typeof id === 'string' && ids.some((one) => !known.has(one)) && left-- > 0)
          learn(await lookUp(id).catch(() => []))
        answers.push(ids.length === 0 ? nobody : setOf(ids.flatMap((one) => known.get(one) ?? [])))
      }
      return answers
    },
  }
}

export type ReadersOf = ReturnType<typeof createReaders>['of']

function nameOf({ type, emailAddress, domain, allowFileDiscovery, deleted, expirationTime, view }: Permission) {
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

/** Whether a principal may read: one of its roles is the e-mail address of a reader, or the domain. False when the readers are unknown. */
export function mayRead(principal: Principal, readers: Readers | undefined): boolean {
  if (principal === indexer) return true
  if (readers === undefined) return false
  const { roles } = principal
  return readers.has(everybody) || roles.some((role) => role !== everybody && readers.has(role.toLowerCase()))
}
