import { invalid, isResourceError } from '../../core/errors.ts'
import { directoryMimeType, type Page, type Resource } from '../../core/view.ts'
import { codes, ProtocolError } from './errors.ts'
import type { Method } from './method.ts'
import { optionalString, requiredString } from './params.ts'
import { cached, paged } from './wire.ts'

/** The Skills extension (SEP-2640), as it is declared: with it come the two methods, and `resources/directory/read`. */
export const skillsCapability = { 'io.modelcontextprotocol/skills': { directoryRead: true } } as const

export const skillMethods: Readonly<Record<string, Method>> = {
  'skills/list': async ({ params, revision, signal, view: { skills } }) => {
    const cursor = optionalString(params, 'cursor')
    if (skills === undefined) {
      if (cursor !== undefined) throw invalid('The cursor is not one of this list.', 'cursor')
      return { skills: [], ...cached({ ttlMs: 0, scope: 'private' }, revision) }
    }
    const page = await skills.list(cursor === undefined ? {} : { cursor }, { signal })
    return { skills: page.items, ...paged(page, revision) }
  },
  'skills/get': async ({ params, revision, signal, view: { skills } }) => {
    const uri = requiredString(params, 'uri')
    const found = await skills?.get(uri, { signal }).catch((error: unknown) => {
      if (isResourceError(error, 'not-found')) return undefined
      throw error
    })
    // The extension wants this code on every revision. Absent and denied are the same bytes.
    if (found === undefined) throw new ProtocolError(codes.invalidParams, 'No skill is served there')
    return { skill: found.skill, ...cached(found.cache, revision) }
  },
}

/** A page of a directory as the extension spells it: the URIs of directories have no final `/`. */
export function withPlainDirectories(page: Page<Resource>): Page<Resource> {
  const isDirectory = ({ uri, mimeType }: Resource) => mimeType === directoryMimeType && uri.endsWith('/')
  return { ...page, items: page.items.map((one) => (isDirectory(one) ? { ...one, uri: one.uri.slice(0, -1) } : one)) }
}
