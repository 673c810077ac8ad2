import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseDocument } from '../../src/config/document.ts'
import { validateWithZod } from '../../src/config/explain.ts'
import { loadConfigSchema } from '../../src/config/schema.ts'
import { volumeOf } from '../support/volume.ts'

const configSchema = await loadConfigSchema()

/** A configuration is judged without zod, and by zod where it is refused. Both must agree, on every value. */
const docs = join(import.meta.dirname, '../../docs')

/** The mounts that the documentation shows, by address. */
const mounts = readdirSync(docs, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .flatMap((name) => [...readFileSync(join(docs, name), 'utf8').matchAll(/```jsonc?\n(.*?)```/gs)])
  .flatMap(([, text = '']) => {
    const { document, faults } = parseDocument('example', text)
    const { mounts = {} } = Object(document.value) as { readonly mounts?: Readonly<Record<string, unknown>> }
    return faults.length > 0 ? [] : Object.entries(mounts)
  })

const settings = {
  name: 'notes',
  http: { listen: 8787, limits: { timeout: '1m', body: '1MiB' }, metrics: { roles: ['monitor'] } },
  roles: ['reader'],
  clients: { tools: 'auto', profiles: [{ name: ['Zed', 'cursor-*'], list: { most: 'all', match: 'docs/**' } }] },
  store: { sqlite: 'store.sqlite' },
  cursorSecret: [{ env: 'A' }, { file: 'b' }],
}

function agree(value: unknown): void {
  const quick = configSchema.safeParse(value)
  const full = validateWithZod(configSchema, value)
  if ('issues' in full) expect(quick.success, JSON.stringify(value)).toBe(false)
  else expect(quick.data, JSON.stringify(value)).toEqual(full.data)
}

test('the examples in the documentation are parsed alike by the quick and by the explaining parser of configurations', () => {
  expect(mounts.length).toBeGreaterThan(20)
  for (const [address, mount] of mounts) agree({ ...settings, mounts: { [address]: mount } })
  expect(
    configSchema.safeParse({ ...settings, mounts: { 'file:///a': { provider: 'files', root: 'a' } } }).success,
  ).toBe(true)
})

const odd = fc.oneof(
  fc.constantFrom<unknown>(
    undefined,
    null,
    '',
    '*',
    'private',
    '10s',
    '1MiB',
    '/a',
    -1,
    0,
    1,
    1.5,
    2 ** 60,
    true,
    [],
    {},
  ),
  fc.constantFrom<unknown>({ env: 'A' }, { file: 'a', env: 'b' }, ['a'], [''], { allow: ['a'] }, { ttl: '1s' }),
  fc.jsonValue(),
)

/** A value with one of its parts replaced, removed, or joined by another. */
function changed(value: unknown, path: readonly number[], key: string, by: unknown): unknown {
  const [step = 0, ...rest] = path
  if (path.length === 0 || typeof value !== 'object' || value === null) return by
  const entries = Object.entries(value)
  const at = step % (entries.length + 2)
  if (at === entries.length) return Array.isArray(value) ? [...value, by] : { ...value, [key]: by }
  if (at > entries.length) return Array.isArray(value) ? value.slice(1) : Object.fromEntries(entries.slice(1))
  const next = entries.map(([name, one], i) => [name, i === at ? changed(one, rest, key, by) : one] as const)
  return Array.isArray(value) ? next.map(([, one]) => one) : Object.fromEntries(next)
}

test('a changed configuration is refused by both the quick and the explaining parser, or parsed alike', () => {
  const keys = fc.constantFrom(
    'provider',
    'title',
    'cache',
    'access',
    'limits',
    'scope',
    'x',
    '__proto__',
    'constructor',
  )
  const path = fc.array(fc.nat(30), { minLength: 1, maxLength: 6 })
  fc.assert(
    fc.property(fc.nat(mounts.length - 1), path, keys, odd, (which, steps, key, by) => {
      const [address, mount] = mounts[which] ?? []
      agree(changed({ ...settings, mounts: { [String(address)]: mount } }, steps, key, by))
      agree({ mounts: { [String(address)]: changed(mount, steps, key, by) } })
    }),
    { numRuns: volumeOf(500) },
  )
})
