import { indexer } from '../../core/mount-reader.ts'
import type { Principal } from '../../core/provider.ts'
import type { RawFile, Readers } from './model.ts'

/** A permission as Drive tells it. */
type Permission = NonNullable<RawFile['permissions']>[number]

/** Who has the id of a permission, wherever it stands. */
export type LookUp = (fileId: string) => Promise<readonly Permission[]>

/** Everybody: what is shared in a way that anybody can find it. */
const everybody = '*'
const nobody: Readers = new Set()

/** So many times it is asked what the ids of permissions stand for, for one listing. */
const maxLookUps = 200

/**
 * Finds out who may read files: e-mail addresses of people and groups, names of domains, or everybody. What is shared by a link
 * alone does not count: whoever has no link could not find it. Nor does what has ended, or shows less than the content.
 *
 * Of what lies in shared drives, Drive tells only ids of permissions; those that are not known yet are asked for.
 */
export function createReaders() {
  /** By the id of a permission; they are the same at every file. */
  const known = new Map<string, string | undefined>()
  /** One set for all that is shared alike. */
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
    /** @param lookUp Throws where it may not be told: then nobody is. */
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

/** Whether a principal may read: one of its roles is the e-mail address of a reader, or the domain. Not known: no. */
export function mayRead(principal: Principal, readers: Readers | undefined): boolean {
  if (principal === indexer) return true
  if (readers === undefined) return false
  const { roles } = principal
  return readers.has(everybody) || roles.some((role) => role !== everybody && readers.has(role.toLowerCase()))
}
