import type { Output } from './output.ts'

/** Writes a JSON array as its items come, one on a line, so that a long one is never held. */
export interface JsonArray {
  add(items: readonly unknown[]): Promise<void>
  end(): Promise<void>
}

export function createJsonArray(output: Output): JsonArray {
  let empty = true
  return {
    add: async (items) => {
      if (items.length === 0) return
      const lines = items.map((item) => JSON.stringify(item)).join(',\n')
      await output.write(empty ? `[\n${lines}` : `,\n${lines}`)
      empty = false
    },
    end: () => output.write(empty ? '[]\n' : '\n]\n'),
  }
}

/** Writes one value as JSON, for programs and people. */
export async function writeJson(output: Output, value: unknown): Promise<void> {
  await output.write(`${JSON.stringify(value, undefined, 2)}\n`)
}
