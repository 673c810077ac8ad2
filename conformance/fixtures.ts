import { createCatalog } from '../src/core/catalog.ts'
import { notFound } from '../src/core/errors.ts'
import { sleep } from '../src/core/kit/abort.ts'
import type { Change, ChangedKind, Content, Entry, Provider, Template } from '../src/core/provider.ts'
import { inline } from '../src/providers/inline/index.ts'
import { type HttpService, serveHttp } from '../src/server/http/serve-http.ts'
import { describeSkills, withSkills } from '../src/skills/index.ts'
import { diagnostics } from './diagnostics.ts'

/** A provider with one resource at the address of the mount. Its entry has the empty path. */
function single(entry: Omit<Entry, 'path'>, content: Content): Provider {
  const whole: Entry = { path: '', ...entry }
  return {
    async *list({ after }) {
      // The only entry has the empty path, so no page follows it.
      if (after === undefined) yield whole
    },
    stat: async (path) => {
      if (path !== '') throw notFound()
      return whole
    },
    read: async ({ path }) => {
      if (path !== '') throw notFound()
      return [content]
    },
  }
}

/** Interval between changes of the watched resource, in milliseconds. */
const beat = 500

/** A provider with one resource that changes at an interval, with notifications. */
function beating(): Provider {
  const plain = { mimeType: 'text/plain' }
  let count = 0
  return {
    ...single(plain, { ...plain, text: '' }),
    read: async ({ path }) => {
      if (path !== '') throw notFound()
      return [{ ...plain, text: `Watched resource content, version ${count}` }]
    },
    watch: async (signal) => beats(signal, () => count++),
  }
}

async function* beats(signal: AbortSignal, change: () => void): AsyncGenerator<Change> {
  while (!signal.aborted) {
    await sleep(beat, signal)
    change()
    yield { path: '' }
  }
}

/** A provider of tools. Two of them change the list of prompts and of tools, and one declares a header for its argument. */
function switchboard(): Provider {
  const listeners = new Set<(change: Change) => void>()
  let changes = 0
  const tool = (name: string, properties: Readonly<Record<string, unknown>> = {}) => ({
    path: `=tools/${name}`,
    name,
    longName: `switchboard_${name}`,
    description: 'For the suite.',
    inputSchema: { type: 'object', properties },
  })
  const region = { region: { type: 'string', 'x-mcp-header': 'Region' } }
  return {
    async *list() {},
    read: async () => {
      throw notFound()
    },
    tools: {
      list: async () => [
        tool('test_custom_header', region),
        tool('test_trigger_prompt_change'),
        tool('test_trigger_tool_change'),
        ...Array.from({ length: changes }, (_, at) => tool(`test_new_${at}`)),
      ],
      call: async ({ path }) => {
        const of = /trigger_(prompt|tool)_change$/.exec(path)?.[1]
        if (of === 'tool') changes++
        if (of !== undefined)
          for (const tell of listeners) tell({ of: `${of}s` as ChangedKind, path: `=${of}s/test_new_${changes}` })
        return { parts: [{ text: `${path} was called` }] }
      },
    },
    prompts: { separate: true, list: async () => [], get: async () => ({ messages: [] }) },
    watch: async (signal) => told(signal, listeners),
  }
}

async function* told(signal: AbortSignal, listeners: Set<(change: Change) => void>): AsyncGenerator<Change> {
  while (!signal.aborted) {
    yield await new Promise<Change>((resolve, reject) => {
      listeners.add(resolve)
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
    listeners.clear()
  }
}

/** A provider that reads any `{id}/data` by a template, and lists nothing. */
function family(): Provider {
  const template: Template = { template: '{id}/data', name: 'Data by id', mimeType: 'application/json' }
  const known = ['1', '12', '123']
  return {
    async *list() {},
    read: async ({ path }) => {
      const id = /^([^/]+)\/data$/.exec(path)?.[1]
      if (id === undefined) throw notFound()
      return [
        { mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) },
      ]
    },
    templates: async () => [template],
    complete: async ({ argument }) => {
      const values = known.filter((id) => id.startsWith(argument.value))
      return { values, total: values.length, hasMore: false }
    },
  }
}

/** The smallest PNG: one pixel. */
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==',
  'base64',
)

/** Two skills, one with a directory. */
const skills = {
  'git-workflow/SKILL.md': {
    text: '---\nname: git-workflow\ndescription: Follow the conventions for branches and commits\nlicense: MIT\n---\n\n# Git workflow\n',
    mimeType: 'text/markdown',
  },
  'git-workflow/references/branches.md': { text: '# Branches\n', mimeType: 'text/markdown' },
  'refunds/SKILL.md': {
    text: '---\nname: refunds\ndescription: Process refunds\n---\n\n# Refunds\n',
    mimeType: 'text/markdown',
  },
} as const

/** Serves the resources that the scenarios of the conformance suite need, using only the toolkit. */
export async function serveFixtures(): Promise<HttpService> {
  const text = 'This is the content of the static text resource.'
  const plain = { mimeType: 'text/plain' }
  const catalog = createCatalog({
    mounts: [
      {
        address: 'test://static-text',
        provider: single({ ...plain, title: 'Static text', size: text.length }, { ...plain, text }),
      },
      {
        address: 'test://static-binary',
        provider: single({ mimeType: 'image/png', size: pixel.length }, { mimeType: 'image/png', bytes: pixel }),
      },
      { address: 'test://template', provider: family() },
      {
        address: 'test://watched-resource',
        provider: beating(),
      },
      { address: 'test://switchboard', provider: switchboard() },
      { address: 'skill://conformance', provider: describeSkills(inline({ resources: skills })) },
    ],
  })
  const service = await serveHttp({
    view: (principal) => withSkills(catalog.view(principal), { below: ['skill://conformance'] }),
    methods: diagnostics,
    name: 'hikidashi-conformance',
    version: '0.0.0',
    log: () => {},
    host: '127.0.0.1',
    port: 0,
  })
  return {
    url: service.url,
    meter: service.meter,
    close: async () => {
      await service.close()
      await catalog.close()
    },
  }
}
