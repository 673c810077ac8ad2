import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { memory } from '../../examples/memory-provider.ts'
import { notFound } from '../../src/core/errors.ts'
import type { Content, Entry, Provider } from '../../src/core/provider.ts'
import type { Expectation } from '../../src/testing/index.ts'

/** The contents of the providers of the contract suite's own tests. */
export const contents: Readonly<Record<string, string | Uint8Array>> = {
  'a-b': 'dash',
  'a.txt': 'dot',
  'a/b.txt': 'in a directory',
  'a/c/d.md': '# deep\n',
  'a/c/e.md': '# deeper\n',
  'bin/data': Uint8Array.from({ length: 100 }, (_, i) => i * 3),
  'empty.txt': '',
  'kana/\u{ff71}.txt': 'half-width',
  'kana/\u{20bb7}.txt': 'beyond the basic plane',
  'kana/\u{304c}.txt': 'composed',
  'with space.txt': 'space',
}

export const many: typeof contents = Object.fromEntries(
  Array.from({ length: 1100 }, (_, i) => [`many/${String(i).padStart(4, '0')}`, String(i)]),
)

async function entriesOf(provider: Provider): Promise<ReadonlyMap<string, Entry>> {
  const entries = new Map<string, Entry>()
  const context = { principal: { id: 'rich', roles: [] }, signal: new AbortController().signal }
  for await (const entry of provider.list({}, context)) entries.set(entry.path, entry)
  return entries
}

/** A provider with every optional method. */
export function rich(source = contents): Provider {
  const inner = memory(source)
  // Its contents never change.
  let listed: Promise<ReadonlyMap<string, Entry>> | undefined
  const provider: Provider = {
    async *list(query, context) {
      for await (const entry of inner.list(query, context))
        yield {
          ...entry,
          title: 'A title',
          modified: 1_700_000_000_000,
          version: `v${entry.size}`,
          mimeType: 'text/plain; charset=utf-8',
          priority: 0.5,
          audience: ['user'],
          icons: [{ src: 'https://example.com/icon.png' }],
        }
    },
    async stat(path, context) {
      context.signal.throwIfAborted()
      listed ??= entriesOf(provider)
      return (await listed).get(path) ?? Promise.reject(notFound())
    },
    async read({ path, range }, context) {
      const [content] = await inner.read({ path, params: new Map() }, context)
      const bytes = bytesOf(content)
      const facts = { version: `v${bytes.length}`, size: bytes.length }
      if (range === undefined) return content === undefined ? [] : [{ ...content, ...facts }]
      const end = Math.min(range.end ?? bytes.length, bytes.length)
      return [{ ...facts, bytes: bytes.subarray(range.start, end), range: { start: range.start, end } }]
    },
    templates: async () => [
      { template: '{+path}', name: 'file' },
      { template: 'rows/{id}', name: 'row', title: 'A row' },
    ],
    complete: async ({ argument }) => ({ values: [`${argument.value}1`], total: 1, hasMore: false }),
    watch: async (signal) =>
      (async function* () {
        if (!signal.aborted) yield { path: 'a.txt' }
        if (!signal.aborted) await once(signal, 'abort')
      })(),
  }
  return provider
}

export function bytesOf(content: Content | undefined): Uint8Array {
  if (content !== undefined && 'text' in content) return Buffer.from(content.text)
  return content !== undefined && 'bytes' in content ? content.bytes : new Uint8Array()
}

export async function* streamOf(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}

export async function* endless(): AsyncGenerator<Uint8Array> {
  for (;;) {
    await sleep(0)
    yield new Uint8Array(64 * 1024)
  }
}

export const expectationOf = (source: typeof contents): Expectation => ({
  entries: Object.fromEntries(
    Object.entries(source).map(([path, content]) => [
      path,
      typeof content === 'string' ? { text: content, mimeType: 'text/plain; charset=utf-8' } : { bytes: content },
    ]),
  ),
  missing: ['rows/1'],
})
