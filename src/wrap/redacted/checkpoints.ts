/** Byte offset of a part in the redacted text, and the same position in the source. */
export interface Checkpoint {
  readonly source: number
  readonly clean: number
}

/** Remembers where parts begin, so that a part far behind is not looked for from the beginning each time. */
export interface Checkpoints {
  /** The last known one at or before a place in the clean text, of one version of the source. */
  before(key: string, place: number): Checkpoint & { readonly version?: string }
  add(key: string, version: string | undefined, checkpoint: Checkpoint): void
  forget(key: string): void
}

const maxResources = 100
const maxPoints = 4096

export function createCheckpoints(): Checkpoints {
  const resources = new Map<string, { readonly version: string; readonly points: Checkpoint[] }>()
  return {
    before: (key, place) => {
      const known = resources.get(key)
      const point = known?.points.findLast(({ clean }) => clean <= place)
      return known === undefined || point === undefined ? { source: 0, clean: 0 } : { ...point, version: known.version }
    },
    add: (key, version, checkpoint) => {
      // Without a version, offsets cannot be cached.
      if (version === undefined) return
      const known = resources.get(key)
      const points = known?.version === version ? known.points : []
      if ((points.at(-1)?.clean ?? 0) < checkpoint.clean && points.length < maxPoints) points.push(checkpoint)
      resources.delete(key)
      resources.set(key, { version, points })
      for (const oldest of resources.keys()) {
        if (resources.size <= maxResources) break
        resources.delete(oldest)
      }
    },
    forget: (key) => resources.delete(key),
  }
}
