import { describe, expect, test } from 'vitest'

const fail = (): never => {
  throw new Error('a fault')
}

describe('a value that may be there already', () => {
  test('is handed on at once, or when its promise resolves', async () => {
    expect(chain(1, (one) => one + 1)).toBe(2)
    const later = chain(Promise.resolve(1), (one) => one + 1)
    expect(later).toBeInstanceOf(Promise)
    expect(await later).toBe(2)
  })

  test('goes to the next step, and a fault to the other one', async () => {
    const next = (value: number) => `value ${value}`
    const failed = (error: unknown) => `fault ${(error as Error).message}`
    expect(attempt(() => 1, next, failed)).toBe('value 1')
    expect(attempt(fail, next, failed)).toBe('fault a fault')
    expect(await attempt(async () => 1, next, failed)).toBe('value 1')
    expect(await attempt(async () => fail(), next, failed)).toBe('fault a fault')
    // As after `then`, a fault of the next step is not that of the work.
    expect(() => attempt(() => 1, fail, failed)).toThrow('a fault')
    await expect(attempt(async () => 1, fail, failed)).rejects.toThrow('a fault')
  })

  test('goes to the next step, and a fault of either to the other one', async () => {
    const next = (value: number) => `value ${value}`
    const failed = (error: unknown) => `fault ${(error as Error).message}`
    expect(rescue(() => 1, next, failed)).toBe('value 1')
    for (const work of [() => 1, async () => 1]) {
      expect(await rescue(work, next, failed)).toBe('value 1')
      expect(await rescue(work, async (value) => next(value), failed)).toBe('value 1')
      for (const wrong of [fail, async () => fail()]) expect(await rescue(work, wrong, failed)).toBe('fault a fault')
    }
    expect(rescue(fail, next, failed)).toBe('fault a fault')
    expect(await rescue(async () => fail(), next, failed)).toBe('fault a fault')
    expect(() => rescue(() => 1, fail, fail)).toThrow('a fault')
    await expect(rescue(async () => 1, fail, fail)).rejects.toThrow('a fault')
  })

  test('is the end of its work exactly once', async () => {
    let ends = 0
    const end = () => ends++
    expect(finish(() => 1, end)).toBe(1)
    expect(ends).toBe(1)
    expect(() => finish(fail, end)).toThrow('a fault')
    expect(ends).toBe(2)
    let resolve = (_: number) => {}
    const later = finish(() => new Promise<number>((found) => (resolve = found)), end)
    expect(ends).toBe(2)
    resolve(3)
    expect(await later).toBe(3)
    expect(ends).toBe(3)
    await expect(finish(async () => fail(), end)).rejects.toThrow('a fault')
    expect(ends).toBe(4)
  })
})

describe('a method that answers at once if it can', () => {
  test('is a method of promises for everyone else', async () => {
    const double = promising((value: number) => (value < 0 ? fail() : 2 * value))
    expect(double(2)).toBeInstanceOf(Promise)
    expect(await double(2)).toBe(4)
    await expect(double(-1)).rejects.toThrow('a fault')
    const soon = soonOf({}, double)
    expect(soon(2)).toBe(4)
    expect(() => soon(-1)).toThrow('a fault')
  })

  test('is found in a copy of its object, and not behind a wrapper that does not know of it', async () => {
    const inner = { read: promising((path: string) => `content of ${path}`) }
    const copy = { ...inner }
    expect(soonOf(copy, copy.read)('a')).toBe('content of a')
    const denied: typeof inner.read = promising(() => fail())
    const wrapper = { ...inner, read: async (path: string) => (path === 'a' ? denied(path) : inner.read(path)) }
    const read = soonOf(wrapper, wrapper.read)
    await expect(read('a')).rejects.toThrow('a fault')
    expect(await read('b')).toBe('content of b')
  })

  test('keeps the object of any other method', async () => {
    class Source {
      readonly #name = 'source'
      async read(path: string) {
        return `${this.#name} ${path}`
      }
    }
    const source = new Source()
    expect(await soonOf(source, source.read)('a')).toBe('source a')
  })
})
