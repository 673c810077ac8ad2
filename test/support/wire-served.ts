import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Provider } from '../../src/core/provider.ts'
import { files } from '../../src/providers/files/index.ts'
import { prompts } from '../../src/providers/prompts/index.ts'
import type { ServeOptions } from '../../src/server/index.ts'
import { createFolder } from './folder.ts'
import { memory } from './memory.ts'

/** The sources of every recorded session: all kinds of metadata and content, also some that must be cleaned. */
export interface Served {
  readonly options: ServeOptions
  close(): Promise<void>
}

/** The addresses of the mounts, each for one step of a session. */
export const places = {
  /** A resource with all kinds of metadata. */
  rich: 'file:///rich',
  /** A real folder, whose files are read in parts. */
  folder: 'file:///folder',
  /** A source that takes longer than a second. */
  slow: 'file:///slow',
  /** A source whose answer exceeds the limit of stdio. */
  huge: 'file:///huge',
  /** A source that does not answer. */
  down: 'file:///down',
  /** A source that throws an unexpected error. */
  broken: 'file:///broken',
  /** Prompts with every kind of content. */
  prompts: 'zed://prompt-library',
} as const

/** Delay of the slow source, in milliseconds: long enough for a progress notification. */
const slowness = 1400

const icon = { src: 'https://example.org/icon.png', mimeType: 'image/png', sizes: ['48x48'], theme: 'dark' } as const
const modified = Date.UTC(2026, 6, 28)

const rich = memory(
  {
    'all.txt': {
      title: 'All of it',
      description: 'Everything that can be said of a resource',
      mimeType: 'text/plain; charset=utf-8',
      priority: 0.5,
      audience: ['user', 'assistant'],
      icons: [icon, { src: 'data:image/svg+xml;base64,PHN2Zy8+' }],
      size: 3,
      modified,
      version: 'v1',
      text: 'all',
    },
    'bytes.bin': { mimeType: 'application/octet-stream', version: 'v2', bytes: new Uint8Array([0, 255, 128]) },
    'directory/one.md': { title: 'One', mimeType: 'text/markdown', text: '# One' },
    'directory/sub/two.md': '# Two',
    'directory/three.bin': { bytes: new Uint8Array(300) },
    // Metadata that strict clients reject, and a name with control characters.
    'wrong\u202e\u2028.txt': {
      title: 'A lone surrogate \ud800, a bell \u0007',
      description: '\udfff',
      mimeType: 'not a type',
      priority: 7,
      audience: ['user', 'nobody' as 'user'],
      icons: [{ src: 'javascript:alert(1)' }],
      size: -1,
      modified: Number.NaN,
      text: '\ud800',
    },
    'wrong-too.txt': { priority: Number.NaN, size: 1.5, modified: 8e15, mimeType: 'a/b\r\nX: y', text: '' },
    '日本語/引き出し.md': '引き出し',
  },
  [
    { template: '{+path}', name: 'Any', title: 'Any file', description: 'By its path', priority: 1, icons: [icon] },
    { template: 'directory/{name}', name: 'In the directory', mimeType: 'text/markdown', audience: ['assistant'] },
    { template: '{+path}{?lines,bytes}', name: 'A part' },
  ],
)

const written = prompts({
  source: memory({
    'a.md': 'Plain.',
    'ask.md': `---
title: Ask
description: Asks about a part
arguments:
  - { name: part, title: Part, description: Which one, required: true, values: [head, tail] }
  - name: path
    complete: file:///rich/{+path}
---
Look at the {{part}} of this:
![[file:///rich/{{path}}]]
{{role "assistant"}}
I see.`,
    'c.md': '![[file:///rich/bytes.bin]]',
    'd.md': '![[file:///rich/absent]]',
    'wrong.md': '---\ntitle: "A bell \\u0007, a mark \\u202e"\ndescription: x\n---\n{{all}}',
  }),
})

const slow: Provider = {
  ...memory({ 'late.txt': 'late' }),
  read: (_, { signal }) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve([{ text: 'late' }]), slowness)
      signal.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(new Error('aborted'))
      })
    }),
}

const failing = (error: Error): Provider => ({
  // biome-ignore lint/correctness/useYield: it fails before there is anything to yield.
  async *list() {
    if (error instanceof ResourceError) throw error
  },
  stat: async () => {
    throw error
  },
  read: async () => {
    throw error
  },
})

export async function createServed(): Promise<Served> {
  const folder = createFolder()
  folder.write({
    'lines.txt': Array.from({ length: 100 }, (_, i) => `line ${i + 1}\n`).join(''),
    'note.md': '# A note\n',
    'raw.bin': new Uint8Array(64),
    'empty/': null,
    'nested/deep/file.json': '{}',
  })
  const catalog = createCatalog({
    pages: { first: 3, most: 4 },
    mounts: [
      {
        address: places.rich,
        provider: rich,
        title: 'Rich',
        description: 'A mount with everything',
        icons: [icon],
        cache: { ttlMs: 1500.5, scope: 'public' },
      },
      {
        address: places.folder,
        provider: await files({ root: folder.root, rules: [{ match: '**/*.md', priority: 1 }] }),
      },
      { address: places.slow, provider: slow },
      { address: places.huge, provider: memory({ 'huge.txt': 'x'.repeat(11 * 1024 * 1024) }) },
      { address: places.down, provider: failing(new ResourceError('unavailable', 'the disk is away')) },
      { address: places.prompts, provider: written },
      { address: places.broken, provider: failing(new TypeError('a secret of the driver')) },
    ],
  })
  return {
    options: {
      view: (principal) => catalog.view(principal),
      name: 'recorded',
      version: '1.2.3',
      title: 'Recorded',
      instructions: 'List, then read.',
      log: () => {},
    },
    close: async () => {
      await catalog.close()
      folder.remove()
    },
  }
}
