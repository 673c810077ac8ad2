import { compileAccess } from '../../src/core/access.ts'
import type { Catalog, Mount } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Principal, Provider } from '../../src/core/provider.ts'
import type { View } from '../../src/core/view.ts'
import { type Live, live, pause } from '../support/live.ts'
import type { History, Random } from './history.ts'

/** Three who may see different things. */
export const principals: readonly Principal[] = [
  { id: 'guest', roles: [] },
  { id: 'worker', roles: ['team'] },
  { id: 'chief', roles: ['team', 'chief'] },
]

/** How a provider or a view is made faulty, to see that the checks notice. */
export interface Fault {
  readonly provider?: (provider: Provider) => Provider
  readonly view?: (view: View, principal: Principal, catalog: Catalog) => View
}

const rules = compileAccess([
  { allow: ['*'], match: ['open/**', 'come/**'] },
  { allow: ['team'], match: 'team/**' },
  { allow: ['chief'], match: 'secret/**' },
])

/** So many mounts begin to be watched late, each by the first who asks. */
export const lateMounts = 4

/** The sources of a run, and every way in which they change. */
export interface Sources {
  readonly mounts: readonly Mount[]
  readonly uris: readonly string[]
  /** The URI in each mount whose changes say that all changes before it have come. */
  readonly bells: readonly string[]
  /** Writes the next version, or removes the entry. */
  write(uri: string, absent?: boolean): void
  /** Loses the watch of a source; what happens until it is back, nobody tells. */
  lose(random: Random): void
  /** Whether every source that is listened to is watched. */
  readonly watched: boolean
  readonly watching: number
}

export const textOf = (uri: string, version: number) => `${uri}#${version} ${'.'.repeat(version % 50)} #${version}`

export function versionOf(uri: string, text: string): number | 'torn' {
  const version = Number(/#(\d+) /.exec(text)?.[1])
  return text === textOf(uri, version) ? version : 'torn'
}

export function createSources(history: History, random: Random, fault: Fault): Sources {
  const versions = new Map<string, number>()
  const lives = new Map<string, Live>()
  const addresses = ['mem://world', 'mem://plain', ...Array.from({ length: lateMounts }, (_, i) => `mem://late-${i}`)]
  const mounts = addresses.map((address): Mount => {
    const source = live({})
    source.arming = () => pause(20 + random.below(80))
    lives.set(address, source)
    const provider = fault.provider?.(source) ?? source
    return { address, provider, ...(address === 'mem://world' ? { access: rules } : {}) }
  })
  const of = (uri: string): readonly [source: Live, path: string] => {
    const address = addresses.find((one) => uri.startsWith(`${one}/`)) ?? ''
    const source = lives.get(address)
    if (source === undefined) throw new Error(`${uri} is nowhere`)
    return [source, uri.slice(address.length + 1)]
  }

  const write: Sources['write'] = (uri, absent = false) => {
    const [source, path] = of(uri)
    const version = (versions.get(uri) ?? -1) + 1
    versions.set(uri, version)
    const listed = absent || !source.entries.has(path)
    history.add({ kind: 'write', uri, version, listed, absent })
    source.set(path, absent ? undefined : { text: textOf(uri, version) })
  }
  const many = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}.txt`)
  const uris = [
    ...many('mem://world/open/hot/', 20),
    ...many('mem://world/open/calm/', 20),
    ...many('mem://world/team/', 12),
    ...many('mem://world/secret/', 8),
    ...many('mem://plain/deep/down/', 20),
  ]
  const bells = addresses.map((address) => (address === 'mem://world' ? `${address}/open/bell` : `${address}/bell`))
  for (const uri of [...uris, ...bells]) write(uri)

  return {
    mounts,
    uris,
    bells,
    write,
    lose: (random) => {
      const source = random.pick([...lives.values()])
      if (source.watching === 0) return
      history.add({ kind: 'lost' })
      source.drop()
      let failures = random.below(2)
      source.arming = async () => {
        await pause(20 + random.below(80))
        if (failures-- > 0) throw new ResourceError('unavailable', 'not yet')
      }
    },
    get watched() {
      return [...lives.values()].every(({ watching }) => watching === 1)
    },
    get watching() {
      return [...lives.values()].reduce((sum, { watching }) => sum + watching, 0)
    },
  }
}
