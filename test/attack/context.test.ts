import { expect, test } from 'vitest'
import { createAssembleTool, withAssemblePrompt } from '../../src/context/index.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Principal } from '../../src/core/provider.ts'
import type { JsonObject } from '../../src/core/tool.ts'
import { documented } from '../../src/wrap/documented.ts'
import { memory } from '../support/memory.ts'

const now = Date.parse('2026-01-31T00:00:00Z')
const clerk: Principal = { id: 'clerk', roles: [] }
const boss: Principal = { id: 'boss', roles: ['boss'] }

const report = Array.from({ length: 60 }, (_, n) => `The zeppelin report, line ${n}.`).join('\n')
const open = {
  // It names what is hidden, says the same as it, and lies beside it.
  'open/a.md': '# Zeppelin\nSee [the plan](../hidden/plan.md) and `import "../mixed/secret"`.\n',
  'open/copy.md': report,
  'mixed/beside.md': 'zeppelin, beside',
}
const hidden = {
  'hidden/plan.md': 'CANARY zeppelin zeppelin zeppelin: it flies at dawn',
  'hidden/copy.md': report,
  'open/plan.md': 'CANARY zeppelin, in the vault',
  'hidden/must.md': { text: 'CANARY must', priority: 1 },
  'mixed/secret.md': 'CANARY zeppelin',
}
const isHidden = (path: string) => path.startsWith('hidden/') || path === 'mixed/secret.md' || path === 'open/plan.md'
const access = ({ roles }: Principal, path: string) => !isHidden(path) || roles.includes('boss')

/** With what is hidden, and as if it were not there: a caller who may not see it must be answered alike. */
const catalogs = [{ ...open, ...hidden }, open].map((files) =>
  createCatalog({
    mounts: [
      { address: 'memory://docs', provider: memory(files), access },
      { address: 'memory://vault', provider: memory(files), access: ({ roles }) => roles.includes('boss') },
    ],
  }),
)
const places = [
  'memory://docs/hidden/plan.md',
  'memory://docs/none/plan.md',
  'memory://vault/open/plan.md',
  'memory://none/plan.md',
]

const calls: readonly JsonObject[] = [
  { query: 'zeppelin' },
  { query: 'zeppelin dawn CANARY', budget: 100 },
  { query: 'zeppelin', budget: 0 },
  { query: 'zeppelin', format: 'mcp' },
  {},
  { suggest: true },
  { suggest: true, query: 'zeppelin' },
  { suggest: true, pins: ['memory://docs/open/a.md'] },
  { pins: ['memory://docs/open/copy.md'], query: 'zeppelin' },
  ...['memory://docs/hidden/', ...places].flatMap((uri) => [
    { query: 'zeppelin', excludes: [uri] },
    { query: 'zeppelin', mounts: [uri] },
    { suggest: true, pins: [uri], query: 'zeppelin' },
  ]),
  ...places.flatMap((uri) => [
    { pins: [uri] },
    { pins: [{ uri, level: 'link' }], pins_only: true },
    { pins: [uri], measure: true },
    { pins: [`${uri}?lines=1-2`], measure: true },
    { pins: [uri], excludes: [uri], pins_only: true },
  ]),
]

async function asked(catalog: (typeof catalogs)[number], principal: Principal, given: JsonObject): Promise<string> {
  const tool = createAssembleTool(catalog.view(principal), { now: () => now })
  try {
    return JSON.stringify(await tool.call(given, { principal, signal: new AbortController().signal }))
  } catch (error) {
    return error instanceof ResourceError ? JSON.stringify([error.kind, error.message, error.detail]) : String(error)
  }
}

test('a context is the same with and without resources that its caller may not see', async () => {
  const [whole, without] = catalogs
  if (whole === undefined || without === undefined) throw new Error('there are two catalogs')
  let told = 0
  for (const given of calls) {
    const answer = await asked(whole, clerk, given)
    expect(answer, JSON.stringify(given)).toBe(await asked(without, clerk, given))
    expect(answer).not.toMatch(/CANARY(?! zeppelin"|")/)
    if ((await asked(whole, boss, given)) !== answer) told++
  }
  // Whoever may see it is told of it.
  expect(told).toBeGreaterThan(20)
  expect(await asked(whole, boss, { query: 'zeppelin' })).toContain('CANARY zeppelin')
})

test('a hidden resource that a caller pins in a context gives the same message as an absent one', async () => {
  const [whole] = catalogs
  if (whole === undefined) throw new Error('there are two catalogs')
  for (const given of [{}, { pins_only: true }, { measure: true }] as const) {
    const shapes = new Set<string>()
    for (const uri of places) {
      shapes.add((await asked(whole, clerk, { ...given, pins: [uri] })).replaceAll(uri, 'URI'))
    }
    expect([...shapes]).toHaveLength(1)
  }
})

test('the prompt assemble_context gives two callers of one server only the resources that each may see', async () => {
  const [whole] = catalogs
  const textFor = async (principal: Principal) => {
    const { prompts } = withAssemblePrompt(whole?.view(principal) ?? expect.fail(), { now: () => now })
    const filled = await prompts?.get({ name: 'assemble_context', arguments: new Map([['query', 'zeppelin']]) })
    const completed = await prompts?.complete({ name: 'assemble_context', argument: { name: 'mounts', value: '' } })
    return JSON.stringify([filled, completed])
  }
  const [clerks, bosses] = await Promise.all([textFor(clerk), textFor(boss)])
  expect(clerks).toContain('memory://docs/mixed/beside.md')
  expect(clerks).not.toMatch(/CANARY|vault|hidden\/(?!plan\.md\))/)
  expect(bosses).toMatch(/CANARY.*memory:\/\/vault/s)
})

test('front matter cannot make a document required in a context, but a priority of 1 from the source can', async () => {
  const claims = (priority: string) => ({ text: `---\npriority: ${priority}\n---\nWords about nothing.\n` })
  const provider = memory({
    'claims.md': claims('1'),
    'quoted.md': claims('"1"'),
    'nearly.md': claims('0.9999999999'),
    'modest.md': claims('0.4'),
    'ruled.md': { ...claims('0.1'), priority: 1 },
    'both.md': { ...claims('1'), priority: 1 },
  })
  const mounts = [{ address: 'memory://docs', provider: documented(provider, { frontMatter: ['*.md'] }) }]
  const view = createCatalog({ mounts }).view(clerk)
  const priorities = new Map((await view.list()).items.map(({ name, priority }) => [name, priority]))
  expect(Object.fromEntries(priorities)).toEqual({
    'both.md': 1,
    'claims.md': 0.99,
    'modest.md': 0.4,
    'nearly.md': 0.99,
    'quoted.md': 0.99,
    'ruled.md': 1,
  })
  const tool = createAssembleTool(view, { now: () => now })
  const call = (given: JsonObject) => tool.call(given, { principal: clerk, signal: new AbortController().signal })
  const { structured } = await call({ query: 'zeppelin', budget: 4000 })
  const { items } = structured as { items: readonly { uri: string; required: boolean }[] }
  const required = items.filter((item) => item.required).map(({ uri }) => uri)
  expect(required).toEqual(['memory://docs/both.md', 'memory://docs/ruled.md'])
  expect(JSON.stringify(items)).not.toContain('claims.md')
})
