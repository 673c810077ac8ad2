import { createCatalog } from '../core/catalog.ts'
import type { Log } from '../core/log.ts'
import type { Views } from '../core/opening.ts'
import type { Principal } from '../core/provider.ts'
import { formatUri, overlap, parseAddress } from '../core/uri.ts'
import type { SkillView, View } from '../core/view.ts'
import { ownSkills, ownSkillsProvider } from '../skills/own.ts'
import type { PlannedMount } from './plan.ts'
import type { MountConfig } from './schema.ts'

export interface SkillSources {
  readonly mounts: readonly PlannedMount[]
  readonly log: Log
}

/**
 * Gives views their skills: those of the mounts that say so, and those that hikidashi brings itself, which are in no list of
 * resources. Nothing is looked for before somebody asks.
 */
export function withMountedSkills(views: Views, { mounts, log }: SkillSources): Views {
  const below = mounts.flatMap(({ address, config }) => rootsOf(address, config))
  const isTaken = mounts.some(({ address }) => overlap(parseAddress(address), parseAddress(ownSkills)))
  const own = isTaken ? undefined : createCatalog({ mounts: [{ address: ownSkills, provider: ownSkillsProvider() }] })
  const load = once(async () => {
    const { createDigests, skillsOf } = await import('../skills/index.ts')
    const digests = createDigests()
    const all = { below: own === undefined ? below : [...below, ownSkills], digests, log }
    return (view: View) => skillsOf(view, all)
  })
  const extended = (view: View, principal: Principal): View => {
    const whole = own === undefined ? view : withOwn(view, own.view(principal))
    let made: Promise<SkillView> | undefined
    const skills = () => {
      made ??= load().then((skillsOfView) => skillsOfView(whole))
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

/** A view in which what is at the address of our own skills is read from there. */
function withOwn(view: View, own: View): View {
  const isOwn = (uri: string) => /^skill:\/\/hikidashi(?:[/?]|$)/i.test(uri)
  return {
    ...view,
    read: (uri, options) => (isOwn(uri) ? own : view).read(uri, options),
    directory: (query, options) => (isOwn(query.uri) ? own : view).directory(query, options),
  }
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}
