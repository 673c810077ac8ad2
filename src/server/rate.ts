/** How often something may be done: so many times a second in the long run, and so many at once after a rest. */
export interface RateOptions {
  readonly perSecond: number
  readonly burst: number
  /** In milliseconds. */
  readonly now?: () => number
}

/** A token bucket for each key. */
export interface Rate {
  /** Takes a token. Answers 0, or how many seconds it takes until there is one: nothing is taken then. */
  take(key: string): number
  /** How many keys are remembered. */
  readonly size: number
}

interface Bucket {
  tokens: number
  /** When it had so many. */
  at: number
}

/** So many keys are remembered before those that have rested are forgotten. */
const maxKeys = 10_000

export function createRate({ perSecond, burst, now = () => performance.now() }: RateOptions): Rate {
  const buckets = new Map<string, Bucket>()

  const fill = (bucket: Bucket, time: number): void => {
    bucket.tokens = Math.min(burst, bucket.tokens + ((time - bucket.at) / 1000) * perSecond)
    bucket.at = time
  }
  /** A bucket that is full is as one that never was. */
  const forget = (time: number): void => {
    for (const [key, bucket] of buckets) {
      fill(bucket, time)
      if (bucket.tokens >= burst) buckets.delete(key)
    }
    // Whoever comes with ever new keys gets no more out of it than the oldest of them.
    for (const key of buckets.keys()) {
      if (buckets.size < maxKeys) break
      buckets.delete(key)
    }
  }

  return {
    take: (key) => {
      const time = now()
      let bucket = buckets.get(key)
      if (bucket === undefined) {
        if (buckets.size >= maxKeys) forget(time)
        bucket = { tokens: burst, at: time }
        buckets.set(key, bucket)
      }
      fill(bucket, time)
      if (bucket.tokens < 1) return (1 - bucket.tokens) / perSecond
      bucket.tokens--
      return 0
    },
    get size() {
      return buckets.size
    },
  }
}
