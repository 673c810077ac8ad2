import type { FoundHit } from '../../../core/found.ts'

/** The hits of one document. */
export interface HitGroup {
  readonly document: string
  /** Best first. */
  readonly hits: readonly FoundHit[]
}

/** Puts the hits of one document together, where the best of them stands. */
export function groupsOf(hits: readonly FoundHit[]): readonly HitGroup[] {
  const groups = new Map<string, FoundHit[]>()
  for (const hit of hits) {
    const group = groups.get(hit.document)
    if (group === undefined) groups.set(hit.document, [hit])
    else group.push(hit)
  }
  return [...groups].map(([document, own]) => ({ document, hits: own }))
}
