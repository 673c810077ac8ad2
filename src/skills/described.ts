import { isResourceError } from '../core/errors.ts'
import { createRecent } from '../core/kit/lru.ts'
import { baseName, parentOf } from '../core/path.ts'
import type { Context, Entry, Provider } from '../core/provider.ts'
import { readHeader, skillFile } from './header.ts'

/** The largest `SKILL.md` that is looked into for a listing, in bytes. */
const maxListed = 1024 * 1024

/** Gives each `SKILL.md` of a provider the name and the description of its skill, as the Skills extension wants it. */
export function describedSkills(provider: Provider): Provider {
  const known = createRecent<Partial<Entry>>(2000)

  const factsOf = async ({ path, size = 0 }: Entry, context: Context): Promise<Partial<Entry>> => {
    if (size > maxListed) return {}
    try {
      const [content] = await provider.read({ path, params: new Map() }, { ...context, bare: true })
      if (content === undefined || !('text' in content)) return {}
      const header = readHeader(content.text, baseName(parentOf(path)))
      return 'fault' in header ? {} : { name: header.name, description: header.description, mimeType: 'text/markdown' }
    } catch (error) {
      // It is listed all the same; reading it says what is the matter.
      if (isResourceError(error)) return {}
      throw error
    }
  }

  const describe = async (entry: Entry, context: Context): Promise<Entry> => {
    if (!isNestedSkillFile(entry.path)) return entry
    const key = entry.version === undefined ? undefined : `${entry.version}/${entry.path}`
    const facts = (key === undefined ? undefined : known.get(key)) ?? (await factsOf(entry, context))
    if (key !== undefined) known.set(key, facts)
    return { ...entry, ...facts }
  }

  const { stat } = provider
  return {
    ...provider,
    list: async function* (query, context) {
      for await (const entry of provider.list(query, context)) yield await describe(entry, context)
    },
    ...(stat === undefined ? {} : { stat: async (path, context) => describe(await stat(path, context), context) }),
  }
}

/** Whether a path is that of a `SKILL.md` in a directory of the mount. */
function isNestedSkillFile(path: string): boolean {
  return path.endsWith(`/${skillFile}`)
}
