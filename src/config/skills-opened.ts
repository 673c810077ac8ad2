import { createCatalog } from '../core/catalog.ts'
import type { Log } from '../core/log.ts'
import type { Principal } from '../core/provider.ts'
import type { SkillView, View } from '../core/view.ts'
import { createDigests, ownSkills, ownSkillsProvider, skillsOf } from '../skills/index.ts'

/** Objects that are created at the first request for skills. */
export interface OpenedSkills {
  /** The view of our own skills. */
  own(principal: Principal): View
  /** The skills in a view. */
  skillsOf(view: View): SkillView
}

export function openSkills(below: readonly string[], log: Log): OpenedSkills {
  const catalog = createCatalog({ mounts: [{ address: ownSkills, provider: ownSkillsProvider() }] })
  const digests = createDigests()
  return {
    own: (principal) => catalog.view(principal),
    skillsOf: (view) => skillsOf(view, { below, digests, log }),
  }
}
