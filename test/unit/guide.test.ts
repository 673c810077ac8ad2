import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createGuide } from '../../src/config/overview.ts'
import type { PlannedMount } from '../../src/config/plan.ts'
import { createProfileFinder, hostLimits } from '../../src/config/profiles.ts'
import { loadMountSchemas } from '../../src/config/schema-parts.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Principal } from '../../src/core/provider.ts'
import { openViewChannel } from '../../src/server/serve.ts'
import { meta } from '../attack/harness/wire.ts'
import { volumeOf } from '../support/volume.ts'

const { mount: mountSchema } = await loadMountSchemas()
const ada: Principal = { id: 'ada', roles: ['reader'] }
const guest: Principal = { id: 'guest', roles: [] }
const planned = (address: string, config: object): PlannedMount => ({
  address,
  config: mountSchema.parse(config),
  folder: '/srv',
})
const files = (address: string, more: object = {}) => planned(address, { provider: 'files', root: '.', ...more })
const wordsOf = (text: string) => text.split(/\s+/).filter((word) => word !== '').length

const project = [
  files('file:///srv/app', { title: 'Files' }),
  planned('git://app', { provider: 'git', repository: '.', title: 'History' }),
  planned('search://app', { provider: 'search', over: '*' }),
]

describe('the instructions of a server', () => {
  test('list the mounts, and say how to search, read a part and expand a template', () => {
    const guide = createGuide(project)(guest)
    expect(guide).toContain('Files at file:///srv/app')
    expect(guide).toContain('History at git://app')
    expect(guide).toContain('search://app?q=')
    expect(guide).toContain('?lines=10-40')
    expect(guide).toContain('file:///srv/app/{+path}')
  })

  test('have at most 120 words with the note on the limits of any host, for any mounts', () => {
    const longest = Math.max(
      ...hostLimits.map(({ name }) => {
        const profileOf = createProfileFinder(undefined, createCatalog({ mounts: [] }))
        return wordsOf(profileOf({ name: name.replace('*', ''), version: '1' }).note ?? '')
      }),
    )
    expect(longest).toBeGreaterThan(5)
    const titles = fc.array(fc.string({ minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 60 })
    const kinds = [
      { provider: 'files', root: '.' },
      { provider: 'git', repository: '.' },
      { provider: 'sqlite', file: 'a.db' },
      { provider: 'env' },
      { provider: 'search', over: '*' },
    ]
    const mount = fc.tuple(titles, fc.constantFrom(...kinds), fc.integer({ min: 1, max: 300 }))
    fc.assert(
      fc.property(fc.array(mount, { maxLength: 300 }), (mounts) => {
        const plan = mounts.map(([title, kind, length], index) =>
          planned(`x://${'a'.repeat(length)}${index}`, { ...kind, title: title.join(' ').trim() || 'x' }),
        )
        const guide = createGuide(plan)(guest)
        expect(wordsOf(guide) + longest).toBeLessThanOrEqual(120)
        expect(guide.length).toBeLessThan(2000)
        expect(guide).not.toMatch(/[\p{Cc}]/u)
      }),
      { numRuns: volumeOf(100, 20) },
    )
    const many = Array.from({ length: 300 }, (_, at) => files(`file:///srv/${at}`))
    expect(createGuide(many)(guest)).toContain('300 mounts (300 files)')
  })

  test('name nothing that the principal may not see', () => {
    const plan = [
      ...project,
      files('file:///srv/secret-plans', { title: 'Plans', access: ['reader'] }),
      files('file:///srv/scoped', { title: 'Scoped', scopes: ['deep'] }),
    ]
    const without = { ...guest, scopes: [] }
    expect(createGuide(plan)(without)).toBe(createGuide(project)(without))
    expect(createGuide(plan)(ada)).toContain('Plans at file:///srv/secret-plans')
    expect(createGuide(plan)({ ...guest, scopes: ['deep'] })).toContain('Scoped')
    const hiddenSearch = [project[0], planned('search://app', { provider: 'search', over: '*', access: ['reader'] })]
    const shown = createGuide(hiddenSearch.filter((one) => one !== undefined))(guest)
    expect(shown).not.toContain('search://')
  })

  test.each(['legacy', 'modern'] as const)(
    'are generated for the first answer (protocol era: %s), unless the operator wrote them',
    async (era) => {
      const catalog = createCatalog({ mounts: [] })
      const options = { name: 'n', version: '1', view: catalog.view, log: () => {}, guide: createGuide(project) }
      const told = async (more: object) => {
        const channel = await openViewChannel({ ...options, ...more }, guest, era)
        const clientInfo = { name: 'c', version: '1' }
        const [method, params] =
          era === 'modern'
            ? ['server/discover', { _meta: meta }]
            : ['initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }]
        const answer = await channel.request({ jsonrpc: '2.0', id: 1, method, params })
        return (answer as { readonly result?: { readonly instructions?: string } }).result?.instructions
      }
      expect(await told({})).toBe(createGuide(project)(guest))
      expect(await told({ instructions: 'Mine.' })).toBe('Mine.')
    },
  )
})
