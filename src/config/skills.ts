import { promising, soonOf } from '../core/kit/chain.ts'
import type { Log } from '../core/log.ts'
import type { Views } from '../core/opening.ts'
import type { Principal } from '../core/provider.ts'
import { formatUri, overlap, parseAddress } from '../core/uri.ts'
import type { SkillView, View } from '../core/view.ts'
import type { PlannedMount } from './plan.ts'
import type { MountConfig } from './schema.ts'

interface SkillSources {
  readonly mounts: readonly PlannedMount[]
  readonly log: Log
}

/** The address of the skills that hikidashi brings itself. */
const ownAddress = 'skill://hikidashi'

/**
 * Gives views their skills: the skills of mounts with `skills`, and hikidashi's own skills, which are in no list of resources.
 * Skills are looked for and loaded at the first request for them.
 */
export function withMountedSkills(views: Views, { mounts, log }: SkillSources): Views {
  const isTaken = mounts.some(({ address }) => overlap(parseAddress(address), parseAddress(ownAddress)))
  const below = mounts.flatMap(({ address, config }) => rootsOf(address, config))
  let opened: Promise<OpenedSkills> | undefined
  const open = () => {
    const roots = isTaken ? below : [...below, ownAddress]
    opened ??= openSkills(roots, log)
    return opened
  }
  const extended = (view: View, principal: Principal): View => {
    const own = async () => (await open()).own(principal)
    const whole = isTaken ? view : withOwn(view, own)
    let made: Promise<SkillView> | undefined
    const skills = () => {
      made ??= open().then(({ skillsOf }) => skillsOf(whole))
      return made
    }
    return {
      ...whole,
      skills: {
        list: async (query, options) => (await skills()).list(query, options),
        get: async (uri, options) => (await skills()).get(uri, options),
      },
    }
  }
  return {
    view: (principal) => extended(views.view(principal), principal),
    narrowed: (narrowing) => {
      const viewOf = views.narrowed(narrowing)
      return (principal) => extended(viewOf(principal), principal)
    },
  }
}

/** The directories of a mount that skills are looked for in. */
function rootsOf(address: string, config: MountConfig): readonly string[] {
  const skills = 'skills' in config ? config.skills : undefined
  if (skills === undefined || skills === false) return []
  const mounted = parseAddress(address)
  return skills === true ? [mounted.text] : [skills].flat().map((path) => formatUri(mounted, path))
}

/** A view that reads hikidashi's own skills at their address, and everything else as before. */
function withOwn(view: View, own: () => Promise<View>): View {
  const isOwn = (uri: string) => /^skill:\/\/hikidashi(?:[/?]|$)/i.test(uri)
  return {
    ...view,
    read: promising((uri, options) =>
      isOwn(uri) ? own().then((skills) => skills.read(uri, options)) : soonOf(view, view.read)(uri, options),
    ),
    directory: async (query, options) => (isOwn(query.uri) ? await own() : view).directory(query, options),
  }
}

/** Objects that are loaded and created at the first request for skills. */
interface OpenedSkills {
  /** The view of our own skills. */
  own(principal: Principal): View
  /** The skills in a view. */
  skillsOf(view: View): SkillView
}

async function openSkills(below: readonly string[], log: Log): Promise<OpenedSkills> {
  const [{ createCatalog }, { createDigests, ownSkills, ownSkillsProvider, skillsOf }] = await Promise.all([
    import('../core/catalog.ts'),
    import('../skills/index.ts'),
  ])
  const catalog = createCatalog({ mounts: [{ address: ownSkills, provider: ownSkillsProvider() }] })
  const digests = createDigests()
  return {
    own: (principal) => catalog.view(principal),
    skillsOf: (view) => skillsOf(view, { below, digests, log }),
  }
}
