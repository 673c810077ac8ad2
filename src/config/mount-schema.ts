import { type SourceName, sourceNamed, sources } from '../providers/index.ts'
import type { FindingContext, OptionsOf, SourceConfig } from '../providers/source.ts'
import * as z from '../schema/builder.ts'
import { type Effect, type Context as EffectContext, effectsBy, type Rules } from '../schema/effects.ts'
import { mountShape } from '../schema/fields.ts'
import type { Finding } from '../schema/refusals.ts'

type ConfigModule<Name extends SourceName> = Awaited<ReturnType<(typeof sources)[Name]['config']>>
type Flat<Type> = { [Key in keyof Type]: Type[Key] }

/** A parsed mount of a configuration. Its keys depend on its source, which is `provider`. */
export type MountConfig = {
  [Name in SourceName]: Flat<{ provider: Name } & OptionsOf<ConfigModule<Name>['source']['shape']>>
}[SourceName]

/** The declaration of a source that is known only at run time. */
type AnySource = SourceConfig<z.Shape>

/** Options of every mount: they have no effect beyond reading. */
const commonRules = {
  title: 'none',
  description: 'none',
  link: 'none',
  access: 'none',
  scopes: 'none',
  cache: 'none',
  poll: 'none',
  limits: 'none',
} as const satisfies Rules<z.output<z.Members<typeof mountShape>>>

/** The schemas of the loaded sources, and their other declarations about mounts. */
export interface MountSchemas {
  /** Validates a mount of one of these sources, and refuses every other. */
  readonly mount: z.Schema<MountConfig>
  /** The source of a mount before validation; undefined if the mount names no known source. */
  sourceOf(written: unknown): AnySource | undefined
  /** Returns the effects of a mount beyond reading the folder of its configuration. */
  effectsOf(config: MountConfig, context: EffectContext): readonly Effect[]
  /** Finds faults of a mount, before validation, that only its source can detect. */
  findingsOf(written: unknown, context: FindingContext): Promise<readonly Finding[]>
}

/** Loads the schemas of all sources, or only of the sources that some mounts name. A start loads only the schemas that it needs. */
export async function loadMountSchemas(mounts?: Iterable<unknown>): Promise<MountSchemas> {
  const wanted = mounts === undefined ? undefined : new Set([...mounts].map(providerOf))
  const names = (Object.keys(sources) as SourceName[]).filter((name) => wanted?.has(name) ?? true)
  const loaded = await Promise.all(names.map(async (name) => [name, await loadSource(name)] as const))
  const schemas = new Map(loaded.map(([name, source]) => [name, schemaOf(name, source)]))
  const known = new Map<unknown, AnySource>(loaded)
  const sourceOf = (written: unknown) => known.get(providerOf(written))
  return {
    mount: z.discriminatedUnion('provider', [...schemas.values()]),
    sourceOf,
    effectsOf: (config, context) => {
      const { provider: _, ...options } = config
      const { always, options: own } = known.get(config.provider)?.effects ?? { options: {} }
      // Options without a rule count as effects, so those of a source that is not loaded are withheld.
      const rules = { ...commonRules, ...own } as Rules<typeof options>
      return [...(always?.(options, context) ?? []), ...effectsBy(rules, options, context)]
    },
    findingsOf: async (written, context) => {
      const source = sourceOf(written)
      if (source?.findings === undefined) return []
      const name = sourceNamed(providerOf(written))?.name
      const options = name === undefined ? undefined : schemas.get(name)?.safeParse(written).data
      return source.findings(written as Readonly<Record<string, unknown>>, context, options)
    },
  }
}

async function loadSource(name: SourceName): Promise<AnySource> {
  const { source } = await sources[name].config()
  // Each source has a type for its own options. The source of a mount is known only at run time.
  return source as unknown as AnySource
}

const made = new Map<SourceName, z.Schema<MountConfig>>()

/** The schema of a mount: the options of its source, and the common options that the source does not define itself. */
function schemaOf(name: SourceName, { about, shape, check }: AnySource): z.Schema<MountConfig> {
  const known = made.get(name)
  if (known !== undefined) return known
  const isCommon = ([key]: readonly [string, unknown]) => Object.hasOwn(mountShape, key)
  const [replaced, own] = [true, false].map((wanted) =>
    Object.fromEntries(Object.entries(shape).filter((member) => isCommon(member) === wanted)),
  )
  const members = z.strictObject({ provider: z.literal(name).describe(about), ...own, ...mountShape, ...replaced })
  const schema = check === undefined ? members : members.superRefine(check)
  made.set(name, schema as unknown as z.Schema<MountConfig>)
  return schema as unknown as z.Schema<MountConfig>
}

function providerOf(mount: unknown): unknown {
  return typeof mount === 'object' && mount !== null && Object.hasOwn(mount, 'provider')
    ? (mount as { readonly provider: unknown }).provider
    : undefined
}
