/** Largest buffer that is kept, and all buffers that are kept together, in bytes. */
const maxKeptBytes = 4 * 1024 * 1024
const maxAllKeptBytes = 16 * 1024 * 1024
/** Time after which unused buffers are freed, in milliseconds. */
const idleMs = 5_000

/**
 * Buffers for long answers. An answer that is sent gives its buffer back, and the next one of about this length takes it: new memory for each
 * answer of 1 MiB cost a quarter of its CPU, in page faults and in collections of garbage.
 */
export function createBufferPool() {
  const taken = new WeakSet<ArrayBufferLike>()
  let kept: Buffer[] = []
  let keptBytes = 0
  let idle: NodeJS.Timeout | undefined
  return {
    /** Returns a buffer of at least `size` bytes. It may hold bytes of an earlier answer. */
    take: (size: number): Buffer => {
      const at = kept.findIndex(({ length }) => length >= size && length <= 2 * size)
      const [buffer = Buffer.allocUnsafeSlow(size)] = at === -1 ? [] : kept.splice(at, 1)
      if (at !== -1) keptBytes -= buffer.length
      taken.add(buffer.buffer)
      return buffer
    },
    /** Takes back the buffer that holds these bytes. Nothing may read them any more. Other bytes than those of a buffer that was taken are ignored. */
    give: ({ buffer }: Buffer) => {
      if (!taken.delete(buffer)) return
      if (buffer.byteLength > maxKeptBytes || keptBytes + buffer.byteLength > maxAllKeptBytes) return
      kept.push(Buffer.from(buffer))
      keptBytes += buffer.byteLength
      idle ??= setTimeout(() => {
        kept = []
        keptBytes = 0
        idle = undefined
      }, idleMs).unref()
      idle.refresh()
    },
  }
}

/** The buffers of all answers of this process. */
export const answerBuffers = createBufferPool()
