import type { Provider } from '../core/provider.ts'
import type * as z from '../schema/builder.ts'
import type { Effect, Context as EffectContext, Rules } from '../schema/effects.ts'
import type { MountOptions, mountShape } from '../schema/mount.ts'
import type { Finding } from '../schema/refusals.ts'
import type { RedactedOptions } from '../wrap/redacted.ts'
import type { MountSettings } from './mount-settings.ts'

/** The options of a mount as they are once parsed: those of its source, and those that every mount has. */
export type OptionsOf<Shape> = z.output<z.Members<Omit<typeof mountShape, keyof Shape> & Shape>>

/** The effects of a mount beyond reading the folder of its configuration. */
export interface SourceEffects<Options> {
  /** Effects of a mount with any options. Default none. */
  readonly always?: (options: Options, context: EffectContext) => readonly Effect[]
  /** One rule for each option of the source. An option without a rule is a type error. */
  readonly options: Rules<Omit<Options, keyof MountOptions>>
}

export interface FindingContext {
  readonly address: string
  /** The folder of the configuration. */
  readonly folder: string
  /** The address of the mount that serves a file, if one does. */
  readonly servedBy: (file: string) => string | undefined
}

/** A source as the configuration sees it: the schema of its mounts, and what follows from their options before anything is opened. */
export interface SourceConfig<Shape extends z.Shape> {
  /** Describes what a mount serves. */
  readonly about: string
  /** The keys of a mount beside `provider` and those that every mount has. One of the latter is replaced by its namesake here. */
  readonly shape: Shape
  /** Refuses options that do not go together. */
  readonly check?: (options: OptionsOf<Shape>, context: z.RefinementCtx) => void
  readonly effects: SourceEffects<OptionsOf<Shape>>
  /** The keys that name a file or folder which must be there; of a `served folder`, the mount serves the files in it. */
  readonly needs?: { readonly [Key in keyof Shape]?: 'file' | 'folder' | 'served folder' }
  /**
   * Finds faults that the schema cannot find. The mount is given as it is written, whatever may be wrong with it, and its options if
   * nothing is wrong.
   */
  readonly findings?: (
    written: Readonly<Record<string, unknown>>,
    context: FindingContext,
    options: OptionsOf<Shape> | undefined,
  ) => readonly Finding[] | Promise<readonly Finding[]>
}

/** Declares a source: the types of its effects and checks follow from its shape. */
export function defineSource<const Shape extends z.Shape>(source: SourceConfig<Shape>): SourceConfig<Shape> {
  return source
}

/** Facts about the files of a provider that are made documents. */
export interface DocumentFacts {
  /** Globs over Markdown documents whose first heading is their title. Default none. */
  readonly headings?: readonly string[]
  /** Globs over files that are served although their names are those of credentials. Default none. */
  readonly except?: readonly string[]
  /** Looks for the same document in other languages although the mount names none. */
  readonly findsTwins?: boolean
  /** Globs over documents with front matter, where the mount names none. Default none. */
  readonly frontMatter?: readonly string[]
}

/** The mount that a source is opened for. */
export interface OpenContext extends Omit<MountSettings, 'key' | 'versionKey' | 'replicas' | 'place'> {
  readonly address: string
  /** The folder that relative paths of the mount start at. */
  readonly folder: string
  /** The secrets that are known, and the key of version hashes: for `redacted`. */
  redaction(): Promise<Pick<RedactedOptions, 'key' | 'scrubber' | 'log'>>
  /** Makes documents of the files of a provider, as the options of the mount say (`documentsShape`). */
  documents(provider: Provider, facts?: DocumentFacts): Promise<Provider>
}

/**
 * Opens a source as the options of a mount say.
 *
 * @throws ResourceError `invalid` for options that cannot be used, and errors of the provider.
 */
export type OpenSource<Source extends { readonly shape: z.Shape }, Opened extends Provider = Provider> = (
  options: OptionsOf<Source['shape']>,
  context: OpenContext,
) => Promise<Opened>
