/** Options of a token bucket: the sustained rate per second, and the burst. */
export interface RateOptions {
  readonly perSecond: number
  readonly burst: number
  /** Clock, in milliseconds. */
  readonly now?: () => number
}

/** A rate limit with one token bucket per key. */
export interface Rate {
  /** Takes a token. Returns 0, or, when there is none, the seconds until there is one. */
  take(key: string): number
  /**
   * Takes tokens in advance, as a debt. Returns the seconds until the debt is paid.
   *
   * @param most Maximum debt. Default no limit. Beyond it nothing is taken, and the result is undefined.
   */
  owe(key: string, tokens: number, most?: number): number | undefined
  /** Number of stored buckets. */
  readonly size: number
}

interface Bucket {
  tokens: number
  /** Time at which it had this number of tokens. */
  at: number
}

/** Maximum number of keys. Beyond it, full buckets are removed first. */
const maxKeys = 10_000
/** Minimum time between searches for full buckets, in milliseconds. */
const forgetIntervalMs = 1000

export function createRate({ perSecond, burst, now = () => performance.now() }: RateOptions): Rate {
  const buckets = new Map<string, Bucket>()
  let forgot = Number.NEGATIVE_INFINITY

  const fill = (bucket: Bucket, time: number): void => {
    bucket.tokens = Math.min(burst, bucket.tokens + ((time - bucket.at) / 1000) * perSecond)
    bucket.at = time
  }
  /** Removes full buckets, which are equal to new ones. */
  const forget = (time: number): void => {
    // Not for each new key: anyone could cause that work.
    if (time - forgot >= forgetIntervalMs) {
      forgot = time
      for (const [key, bucket] of buckets) {
        fill(bucket, time)
        if (bucket.tokens >= burst) buckets.delete(key)
      }
    }
    // A client that uses ever new keys only displaces the oldest of them.
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
