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
  /**
   * Takes tokens that may not be there yet. Answers in how many seconds they are.
   *
   * @param most So many may be owed; by default any number. `undefined`: it would be more, and nothing is taken.
   */
  owe(key: string, tokens: number, most?: number): number | undefined
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
/** How often it is looked which of them have rested, in milliseconds. */
const forgetEvery = 1000

export function createRate({ perSecond, burst, now = () => performance.now() }: RateOptions): Rate {
  const buckets = new Map<string, Bucket>()
  let forgot = Number.NEGATIVE_INFINITY

  const fill = (bucket: Bucket, time: number): void => {
    bucket.tokens = Math.min(burst, bucket.tokens + ((time - bucket.at) / 1000) * perSecond)
    bucket.at = time
  }
  /** A bucket that is full is as one that never was. */
  const forget = (time: number): void => {
    // Looking at all of them for each new one would be work that anybody could cause.
    if (time - forgot >= forgetEvery) {
      forgot = time
      for (const [key, bucket] of buckets) {
        fill(bucket, time)
        if (bucket.tokens >= burst) buckets.delete(key)
      }
    }
    // Whoever comes with ever new keys gets no more out of it than the oldest of them.
    for (const key of buckets.keys()) {
      if (buckets.size < maxKeys) break
      buckets.delete(key)
    }
  }

  const bucketOf = (key: string): Bucket => {
    const time = now()
    let bucket = buckets.get(key)
    if (bucket === undefined) {
      if (buckets.size >= maxKeys) forget(time)
      bucket = { tokens: burst, at: time }
      buckets.set(key, bucket)
    }
    fill(bucket, time)
    return bucket
  }

  return {
    take: (key) => {
      const bucket = bucketOf(key)
      if (bucket.tokens < 1) return (1 - bucket.tokens) / perSecond
      bucket.tokens--
      return 0
    },
    owe: (key, tokens, most = Number.POSITIVE_INFINITY) => {
      const bucket = bucketOf(key)
      if (tokens - bucket.tokens > most) return undefined
      bucket.tokens -= tokens
      return Math.max(0, -bucket.tokens / perSecond)
    },
    get size() {
      return buckets.size
    },
  }
}
